// Reorder on NVIDIA GPUs, between NCHW and NHWC: one thread an element, in the order in which it is
// written.
#pragma once

#include "layers/box_cuda.h"
#include "layers/reorder/reorder.h"

namespace tandem::layers {

class ReorderCuda {
 public:
  ReorderCuda(const sdk::Binding& binding, const sdk::Call&)
      : there_(binding.input(0), binding.output(0)), back_(binding.output(0), binding.input(0)) {}

  static sdk::LayoutOptions layouts(const sdk::Binding&) {
    return {{TANDEM_NCHW, TANDEM_NHWC, 0}, {TANDEM_NHWC, TANDEM_NCHW, 0}};
  }

  void forward(const sdk::Call& call, const sdk::Pass& pass) const {
    copy_box(call, there_, pass.input(0), pass.output(0));
  }
  void backward_data(const sdk::Call& call, const sdk::Pass& pass) const {
    copy_box(call, back_, pass.output_gradient(0), pass.input_gradient(0));
  }

 private:
  Box there_, back_;
};

}  // namespace tandem::layers
