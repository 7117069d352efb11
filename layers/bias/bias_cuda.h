// Bias on NVIDIA GPUs.
#pragma once

#include "layers/bias/bias.h"
#include "layers/spread_cuda.h"

namespace tandem::layers {

struct AddedBias {
  TANDEM_HOST_DEVICE float operator()(float x, float, float bias, float) const { return x + bias; }
};
struct SecondOf {
  TANDEM_HOST_DEVICE float operator()(float, float g) const { return g; }
};

class BiasCuda : public sdk::Needs {
 public:
  BiasCuda(const sdk::Binding& binding, const sdk::Call&)
      : spread_(binding.input(0), axes_of(binding)), trained_(binding.input_count() == 1) {
    if (trained_ || !spread_.one_value_an_element()) {
      scratch_bytes = sums_over(spread_).scratch_bytes();
    }
  }

  static sdk::LayoutOptions layouts(const sdk::Binding& binding) {
    return cuda_layouts_for(binding);
  }

  void forward(const sdk::Call& call, const sdk::Pass& pass) const {
    const float *x = pass.input(0), *b = trained_ ? pass.weight(0) : pass.input(1);
    apply_values(call, spread_, x, x, b, b, pass.output(0), AddedBias());
  }

  void backward_data(const sdk::Call& call, const sdk::Pass& pass) const {
    const float* dy = pass.output_gradient(0);
    if (!trained_ && pass.input_gradient(1) != nullptr) sum(call, pass, pass.input_gradient(1));
    if (pass.input_gradient(0) != nullptr) {
      cuda::copy(call, dy, pass.input_gradient(0), spread_.elements());
    }
  }

  void backward_weights(const sdk::Call& call, const sdk::Pass& pass) const {
    sum(call, pass, pass.weight_gradient(0));
  }

 private:
  // Only weight gradients are ever added to.
  void sum(const sdk::Call& call, const sdk::Pass& pass, float* target) const {
    const float* dy = pass.output_gradient(0);
    if (!trained_ && spread_.one_value_an_element()) {
      return cuda::copy(call, dy, target, spread_.elements());
    }
    sum_values(call, spread_, dy, dy, SecondOf(), pass.scratch<double>(), target,
               trained_ && pass.accumulate());
  }

  Spread spread_;
  bool trained_;
};

}  // namespace tandem::layers
