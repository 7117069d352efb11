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

class ScaleCuda : public BroadcastKernelCuda {
 public:
  ScaleCuda(const sdk::Binding& binding, const sdk::Call&)
      : BroadcastKernelCuda(binding), biased_(binding.weight_count() == 2) {}

  void forward(const sdk::Call& call, const sdk::Pass& pass) const {
    cuda::with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      const T* x = cuda::input<T>(pass, 0);
      T* y = cuda::output<T>(pass, 0);
      if (biased_) {
        apply_values(call, broadcast_, x, x, pass.weight(0), pass.weight(1), y, ScaledAndBiased(),
                     fuses_relu_);
      } else {
        scale(call, pass, x, y, fuses_relu_);
      }
    });
  }

  void backward_data(const sdk::Call& call, const sdk::Pass& pass) const {
    cuda::with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      const T* dy = cuda::output_gradient<T>(pass, 0);
      if (!trained_ && cuda::input_gradient<T>(pass, 1) != nullptr) {
        factor_gradient<T>(call, pass);
      }
      if (T* dx = cuda::input_gradient<T>(pass, 0)) scale(call, pass, dy, dx, false);
    });
  }

  void backward_weights(const sdk::Call& call, const sdk::Pass& pass) const {
    auto* scratch = pass.scratch<double>();
    cuda::with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      const T *x = cuda::input<T>(pass, 0), *dy = cuda::output_gradient<T>(pass, 0);
      if (float* da = pass.weight_gradient(0)) {
        sum_values(call, broadcast_, x, dy, ProductOf(), scratch, da, pass.accumulate());
      }
      if (biased_ && pass.weight_gradient(1) != nullptr) {
        sum_values(call, broadcast_, dy, dy, SecondOf(), scratch, pass.weight_gradient(1),
                   pass.accumulate());
      }
    });
  }

 private:
  // Trained factors are float32, a second input has the type of the first.
  template <class T>
  void scale(const sdk::Call& call, const sdk::Pass& pass, const T* x, T* y,
             bool fuses_relu) const {
    if (trained_) {
      const float* a = pass.weight(0);
      apply_values(call, broadcast_, x, x, a, a, y, Scaled(), fuses_relu);
    } else {
      const T* a = cuda::input<T>(pass, 1);
      apply_values(call, broadcast_, x, x, a, a, y, Scaled(), fuses_relu);
    }
  }
  template <class T>
  void factor_gradient(const sdk::Call& call, const sdk::Pass& pass) const {
    const T *x = cuda::input<T>(pass, 0), *dy = cuda::output_gradient<T>(pass, 0);
    T* da = cuda::input_gradient<T>(pass, 1);
    if (broadcast_.one_value_per_element()) {
      const T* a = cuda::input<T>(pass, 1);
      apply_values(call, broadcast_, x, dy, a, a, da, ProductOf());
    } else {
      sum_values(call, broadcast_, x, dy, ProductOf(), pass.scratch<double>(), da, false);
    }
  }

  bool biased_;
};

}  // namespace tandem::layers
