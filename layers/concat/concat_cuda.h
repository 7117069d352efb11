// Concat on NVIDIA GPUs: a copy of each input.
#pragma once

#include <vector>

#include "layers/common/box_cuda.h"
#include "layers/concat/concat.h"

namespace tandem::layers {

class ConcatCuda {
 public:
  ConcatCuda(const sdk::Binding& binding, const sdk::Call&) : dtype_(binding.input(0).dtype) {
    const tandem_tensor& output = binding.output(0);
    const size_t axis = concat_axis(binding.attributes, binding.input(0).shape);
    Extents begin{};
    for (size_t i = 0; i < binding.input_count(); ++i) {
      const sdk::Shape& input = binding.input(i).shape;
      parts_.emplace_back(output.layout, input, Extents{}, output.shape, begin, extents_of(input));
      begin[axis] += extents_of(input)[axis];
    }
  }

  static constexpr uint32_t dtypes = cuda::all_dtypes;

  static sdk::LayoutOptions layouts(const sdk::Binding&) { return cuda::plain_layouts(); }

  void forward(const sdk::Call& call, const sdk::DevicePass& pass) const {
    cuda::with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      for (size_t i = 0; i < parts_.size(); ++i) {
        copy_box(call, parts_[i], pass.input<T>(i).get(), pass.output<T>(0).get());
      }
    });
  }
  void backward_data(const sdk::Call& call, const sdk::DevicePass& pass) const {
    cuda::with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      for (size_t i = 0; i < parts_.size(); ++i) {
        if (pass.input_gradient<T>(i).get() == nullptr) continue;
        copy_box(call, parts_[i].reversed(), pass.output_gradient<T>(0).get(),
                 pass.input_gradient<T>(i).get());
      }
    });
  }

 private:
  std::vector<Box> parts_;
  int32_t dtype_;
};

}  // namespace tandem::layers
