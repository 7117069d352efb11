// Scale on NVIDIA GPUs.
#pragma once

#include "layers/bias/bias_cuda.h"
#include "layers/scale/scale.h"

namespace tandem::layers {

struct Scaled {
  TANDEM_HOST_DEVICE float operator()(float x, float, float factor, float) const {
    return factor * x;
  }
};
struct ScaledAndBiased {
  TANDEM_HOST_DEVICE float operator()(float x, float, float factor, float bias) const {
    return factor * x + bias;
  }
};
struct ProductOf {
  TANDEM_HOST_DEVICE float operator()(float x, float g) const { return x * g; }
  TANDEM_HOST_DEVICE float operator()(float x, float g, float, float) const { return x * g; }
};

class ScaleCuda : public sdk::Needs {
 public:
  ScaleCuda(const sdk::Binding& binding, const sdk::Call&)
      : spread_(binding.input(0), axes_of(binding)),
        trained_(binding.input_count() == 1),
        biased_(binding.weight_count() == 2) {
    if (trained_ || !spread_.one_value_an_element()) {
      scratch_bytes = sums_over(spread_).scratch_bytes();
    }
  }

  static sdk::LayoutOptions layouts(const sdk::Binding& binding) {
    return cuda_layouts_for(binding);
  }

  void forward(const sdk::Call& call, const sdk::Pass& pass) const {
    const float *x = pass.input(0), *a = factors(pass);
    if (biased_) {
      apply_values(call, spread_, x, x, a, pass.weight(1), pass.output(0), ScaledAndBiased());
    } else {
      apply_values(call, spread_, x, x, a, a, pass.output(0), Scaled());
    }
  }

  void backward_data(const sdk::Call& call, const sdk::Pass& pass) const {
    const float *x = pass.input(0), *dy = pass.output_gradient(0), *a = factors(pass);
    if (!trained_ && pass.input_gradient(1) != nullptr) {
      float* da = pass.input_gradient(1);
      if (spread_.one_value_an_element()) {
        apply_values(call, spread_, x, dy, a, a, da, ProductOf());
      } else {
        sum_values(call, spread_, x, dy, ProductOf(), pass.scratch<double>(), da, false);
      }
    }
    if (pass.input_gradient(0) != nullptr) {
      apply_values(call, spread_, dy, dy, a, a, pass.input_gradient(0), Scaled());
    }
  }

  void backward_weights(const sdk::Call& call, const sdk::Pass& pass) const {
    const float *x = pass.input(0), *dy = pass.output_gradient(0);
    auto* scratch = pass.scratch<double>();
    if (float* da = pass.weight_gradient(0)) {
      sum_values(call, spread_, x, dy, ProductOf(), scratch, da, pass.accumulate());
    }
    if (biased_ && pass.weight_gradient(1) != nullptr) {
      sum_values(call, spread_, dy, dy, SecondOf(), scratch, pass.weight_gradient(1),
                 pass.accumulate());
    }
  }

 private:
  [[nodiscard]] const float* factors(const sdk::Pass& pass) const {
    return trained_ ? pass.weight(0) : pass.input(1);
  }

  Spread spread_;
  bool trained_, biased_;
};

}  // namespace tandem::layers
