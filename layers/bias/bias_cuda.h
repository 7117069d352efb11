// Bias on NVIDIA GPUs.
#pragma once

#include "layers/bias/bias.h"
#include "layers/broadcast_cuda.h"

namespace tandem::layers {

struct AddedBias {
  TANDEM_HOST_DEVICE float operator()(float x, float, float bias, float) const { return x + bias; }
};
struct SecondOf {
  TANDEM_HOST_DEVICE float operator()(float, float g) const { return g; }
};

class BiasCuda : public BroadcastKernelCuda {
 public:
  BiasCuda(const sdk::Binding& binding, const sdk::Call&) : BroadcastKernelCuda(binding) {}

  void forward(const sdk::Call& call, const sdk::Pass& pass) const {
    cuda::with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      const T* x = cuda::input<T>(pass, 0);
      T* y = cuda::output<T>(pass, 0);
      if (trained_) {
        const float* b = pass.weight(0);
        apply_values(call, broadcast_, x, x, b, b, y, AddedBias(), fuses_relu_);
      } else {
        const T* b = cuda::input<T>(pass, 1);
        apply_values(call, broadcast_, x, x, b, b, y, AddedBias(), fuses_relu_);
      }
    });
  }

  void backward_data(const sdk::Call& call, const sdk::Pass& pass) const {
    cuda::with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      const T* dy = cuda::output_gradient<T>(pass, 0);
      if (!trained_ && cuda::input_gradient<T>(pass, 1) != nullptr) {
        sum_to_input<T>(call, pass);
      }
      if (T* dx = cuda::input_gradient<T>(pass, 0)) {
        cuda::copy(call, dy, dx, broadcast_.elements());
      }
    });
  }

  // Only weight gradients may be accumulated.
  void backward_weights(const sdk::Call& call, const sdk::Pass& pass) const {
    cuda::with_elements(dtype_, [&](auto element) {
      const auto* dy = cuda::output_gradient<decltype(element)>(pass, 0);
      sum_values(call, broadcast_, dy, dy, SecondOf(), pass.scratch<double>(),
                 pass.weight_gradient(0), pass.accumulate());
    });
  }

 private:
  template <class T>
  void sum_to_input(const sdk::Call& call, const sdk::Pass& pass) const {
    const T* dy = cuda::output_gradient<T>(pass, 0);
    T* target = cuda::input_gradient<T>(pass, 1);
    if (broadcast_.one_value_per_element()) {
      return cuda::copy(call, dy, target, broadcast_.elements());
    }
    sum_values(call, broadcast_, dy, dy, SecondOf(), pass.scratch<double>(), target, false);
  }
};

}  // namespace tandem::layers
