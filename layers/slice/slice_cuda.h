// Slice on NVIDIA GPUs: a copy of each part.
#pragma once

#include <optional>
#include <vector>

#include "layers/common/box_cuda.h"
#include "layers/slice/slice.h"

namespace tandem::layers {

class SliceCuda {
 public:
  SliceCuda(const sdk::Binding& binding, const sdk::Call&) {
    const tandem_tensor& input = binding.input(0);
    const size_t axis = slice_axis(binding.attributes, input.shape);
    const Extents extents = extents_of(input.shape);
    for (const SlicePart& part :
         slice_parts(binding.attributes, extents[axis], binding.output_count())) {
      Extents begin{}, step{1, 1, 1, 1};
      begin[axis] = part.start;
      step[axis] = part.step;
      const sdk::Shape& output = binding.output(parts_.size()).shape;
      parts_.emplace_back(input.layout, input.shape, begin, output, Extents{}, extents_of(output),
                          step);
    }
    if (takes_steps(binding.attributes)) {
      all_.emplace(input.layout, input.shape, Extents{}, input.shape, Extents{}, extents);
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
    const float* zero = nullptr;
    if (all_) copy_box(call, *all_, zero, pass.input_gradient(0).get());
    for (size_t i = 0; i < parts_.size(); ++i) {
      copy_box(call, parts_[i].reversed(), pass.output_gradient(i).get(),
               pass.input_gradient(0).get());
    }
  }

 private:
  std::vector<Box> parts_;
  std::optional<Box> all_;  // of an input of which some elements are in no output
};

}  // namespace tandem::layers
