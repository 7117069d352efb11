// Crop on NVIDIA GPUs: one copy.
#pragma once

#include "layers/common/box_cuda.h"
#include "layers/crop/crop.h"

namespace tandem::layers {

class CropCuda {
 public:
  CropCuda(const sdk::Binding& binding, const sdk::Call&)
      : elements_(sdk::count(binding.input(0).shape)), box_(box(binding)) {}

  static sdk::LayoutOptions layouts(const sdk::Binding&) { return cuda::plain_layouts(); }

  void forward(const sdk::Call& call, const sdk::DevicePass& pass) const {
    copy_box(call, box_, pass.input(0).get(), pass.output(0).get());
  }
  void backward_data(const sdk::Call& call, const sdk::DevicePass& pass) const {
    cuda::clear(call, pass.input_gradient(0).get(), elements_);
    copy_box(call, box_.reversed(), pass.output_gradient(0).get(), pass.input_gradient(0).get());
  }

 private:
  static Box box(const sdk::Binding& binding) {
    const tandem_tensor& input = binding.input(0);
    const CropBox crop(binding.attributes, input.shape, binding.input(1).shape);
    return {input.layout, input.shape, crop.begin, binding.output(0).shape, {}, crop.extent};
  }

  int64_t elements_;
  Box box_;
};

}  // namespace tandem::layers
