// Concat on NVIDIA GPUs: a copy of each input.
#pragma once

#include <vector>

#include "layers/box_cuda.h"
#include "layers/concat/concat.h"

namespace tandem::layers {

class ConcatCuda {
 public:
  ConcatCuda(const sdk::Binding& binding, const sdk::Call&) {
    const tandem_tensor& output = binding.output(0);
    const size_t axis = concat_axis(binding.attributes, binding.input(0).shape);
    Extents place{};
    for (size_t i = 0; i < binding.input_count(); ++i) {
      const sdk::Shape& input = binding.input(i).shape;
      parts_.emplace_back(output.layout, input, Extents{}, output.shape, place, extents_of(input));
      place[axis] += extents_of(input)[axis];
    }
  }

  static sdk::LayoutOptions layouts(const sdk::Binding&) { return cuda::plain_layouts(); }

  void forward(const sdk::Call& call, const sdk::Pass& pass) const {
    for (size_t i = 0; i < parts_.size(); ++i) {
      copy_box(call, parts_[i], pass.input(i), pass.output(0));
    }
  }
  void backward_data(const sdk::Call& call, const sdk::Pass& pass) const {
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (pass.input_gradient(i) == nullptr) continue;
      copy_box(call, parts_[i].reversed(), pass.output_gradient(0), pass.input_gradient(i));
    }
  }

 private:
  std::vector<Box> parts_;
};

}  // namespace tandem::layers
