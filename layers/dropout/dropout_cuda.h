// Dropout on NVIDIA GPUs: one thread a random block, the cpu's formula. Forward saves the mask as
// bytes, in the order of memory.
#pragma once

#include "layers/dropout/dropout.h"
#include "layers/dropout/dropout_formula.h"
#include "plugins/cuda/places.h"
#include "plugins/cuda/teams.h"

namespace tandem::layers {

struct DropoutForward {
  TANDEM_HOST_DEVICE void operator()(int64_t i) const {
    const int64_t row = cuda::quotient(i, blocks);
    formula.drop(*step, row, static_cast<uint32_t>(first + i - row * blocks), x, y, mask);
  }
  DropoutFormula formula;
  int64_t first;
  cuda::Divisor blocks;
  const tandem_step* step;
  const float* x;
  float* y;
  uint8_t* mask;
};

struct DropoutBackward {
  TANDEM_HOST_DEVICE void operator()(int64_t i) const {
    dx[i] = mask[i] != 0 ? factor * dy[i] : 0.0F;
  }
  float factor;
  const uint8_t* mask;
  const float* dy;
  float* dx;
};

class DropoutCuda : public sdk::Needs {
 public:
  DropoutCuda(const sdk::Binding& binding, const sdk::Call&)
      : formula_(binding),
        rows_(binding.input(0).shape.n),
        elements_(sdk::count(binding.input(0).shape)),
        training_(binding.training()) {
    if (training_ && binding.has(TANDEM_WANTS_BACKWARD_DATA)) saved_bytes = elements_;
  }

  static sdk::LayoutOptions layouts(const sdk::Binding&) { return cuda::plain_layouts(); }

  void forward(const sdk::Call& call, const sdk::Pass& pass) const {
    if (!training_) return cuda::copy(call, pass.input(0), pass.output(0), elements_);
    const int64_t blocks = formula_.blocks();
    cuda::for_each(
        call, rows_ * blocks,
        DropoutForward{formula_, formula_.first_block(), blocks, pass.raw.step, pass.input(0),
                       pass.output(0), saved_bytes > 0 ? pass.saved<uint8_t>() : nullptr});
  }

  void backward_data(const sdk::Call& call, const sdk::Pass& pass) const {
    const float* dy = pass.output_gradient(0);
    if (!training_) return cuda::copy(call, dy, pass.input_gradient(0), elements_);
    cuda::for_each(call, elements_,
                   DropoutBackward{formula_.factor(), pass.saved<const uint8_t>(), dy,
                                   pass.input_gradient(0)});
  }

 private:
  DropoutFormula formula_;
  int64_t rows_, elements_;
  bool training_;
};

}  // namespace tandem::layers
