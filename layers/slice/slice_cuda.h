// Slice on NVIDIA GPUs: a copy of each part.
#pragma once

#include <vector>

#include "layers/common/box_cuda.h"
#include "layers/slice/slice.h"

namespace tandem::layers {

class SliceCuda {
 public:
  SliceCuda(const sdk::Binding& binding, const sdk::Call&) {
    const tandem_tensor& input = binding.input(0);
    const size_t axis = slice_axis(binding.attributes, input.shape);
    Extents begin{};
    for (size_t i = 0; i < binding.output_count(); ++i) {
      const sdk::Shape& output = binding.output(i).shape;
      parts_.emplace_back(input.layout, input.shape, begin, output, Extents{}, extents_of(output));
      begin[axis] += extents_of(output)[axis];
    }
  }

  static sdk::LayoutOptions layouts(const sdk::Binding&) { return cuda::plain_layouts(); }

  void forward(const sdk::Call& call, const sdk::DevicePass& pass) const {
    for (size_t i = 0; i < parts_.size(); ++i) {
      copy_box(call, parts_[i], pass.input(0).get(), pass.output(i).get());
    }
  }
  // An output without a gradient counts as one with gradient zero.
  void backward_data(const sdk::Call& call, const sdk::DevicePass& pass) const {
    for (size_t i = 0; i < parts_.size(); ++i) {
      copy_box(call, parts_[i].reversed(), pass.output_gradient(i).get(),
               pass.input_gradient(0).get());
    }
  }

 private:
  std::vector<Box> parts_;
};

}  // namespace tandem::layers
