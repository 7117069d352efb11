// Reorder on NVIDIA GPUs, between NCHW and NHWC and between dtypes: one thread per element, in the
// order of the target.
#pragma once

#include "layers/box_cuda.h"
#include "layers/reorder/reorder.h"

namespace tandem::layers {

class ReorderCuda {
 public:
  ReorderCuda(const sdk::Binding& binding, const sdk::Call&)
      : there_(binding.input(0), binding.output(0)),
        back_(binding.output(0), binding.input(0)),
        from_(binding.input(0).dtype),
        to_(binding.output(0).dtype) {}

  static constexpr uint32_t dtypes = cuda::all_dtypes;

  static sdk::LayoutOptions layouts(const sdk::Binding&) {
    return {{TANDEM_NCHW, TANDEM_NHWC, 0}, {TANDEM_NHWC, TANDEM_NCHW, 0}};
  }

  void forward(const sdk::Call& call, const sdk::DevicePass& pass) const {
    convert(call, there_, from_, to_, pass.raw.inputs[0], pass.raw.outputs[0]);
  }
  void backward_data(const sdk::Call& call, const sdk::DevicePass& pass) const {
    convert(call, back_, to_, from_, pass.raw.output_gradients[0], pass.raw.input_gradients[0]);
  }

 private:
  static void convert(const sdk::Call& call, const Box& box, int32_t from, int32_t to,
                      const void* source, void* target) {
    cuda::with_elements(from, [&](auto from_element) {
      cuda::with_elements(to, [&](auto to_element) {
        copy_box(call, box, static_cast<const decltype(from_element)*>(source),
                 static_cast<decltype(to_element)*>(target));
      });
    });
  }

  Box there_, back_;
  int32_t from_, to_;
};

}  // namespace tandem::layers
