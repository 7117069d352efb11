// PReLU on NVIDIA GPUs.
#pragma once

#include "layers/prelu/prelu.h"
#include "layers/spread_cuda.h"

namespace tandem::layers {

struct PreluValue {
  TANDEM_HOST_DEVICE float operator()(float x, float, float slope, float) const {
    return x > 0 ? x : slope * x;
  }
};
struct PreluGradient {
  TANDEM_HOST_DEVICE float operator()(float x, float g, float slope, float) const {
    return x > 0 ? g : slope * g;
  }
};
struct PreluSlopeGradient {
  TANDEM_HOST_DEVICE float operator()(float x, float g) const { return x > 0 ? 0.0F : x * g; }
};

class PreluCuda : public sdk::Needs {
 public:
  PreluCuda(const sdk::Binding& binding, const sdk::Call&)
      : spread_(binding.input(0), ParametricRelu::axes(binding.attributes)) {
    if (binding.has(TANDEM_WANTS_BACKWARD_WEIGHTS)) {
      scratch_bytes = sums_over(spread_).scratch_bytes();
    }
  }

  static sdk::LayoutOptions layouts(const sdk::Binding&) { return cuda::plain_layouts(); }

  void forward(const sdk::Call& call, const sdk::Pass& pass) const {
    const float *x = pass.input(0), *slopes = pass.weight(0);
    apply_values(call, spread_, x, x, slopes, slopes, pass.output(0), PreluValue());
  }
  void backward_data(const sdk::Call& call, const sdk::Pass& pass) const {
    const float* slopes = pass.weight(0);
    apply_values(call, spread_, pass.input(0), pass.output_gradient(0), slopes, slopes,
                 pass.input_gradient(0), PreluGradient());
  }
  void backward_weights(const sdk::Call& call, const sdk::Pass& pass) const {
    sum_values(call, spread_, pass.input(0), pass.output_gradient(0), PreluSlopeGradient(),
               pass.scratch<double>(), pass.weight_gradient(0), pass.accumulate());
  }

 private:
  Spread spread_;
};

}  // namespace tandem::layers
