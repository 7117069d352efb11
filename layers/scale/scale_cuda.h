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

  void forward(const sdk::Call& call, const sdk::DevicePass& pass) const {
    cuda::with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      const T* x = pass.input<T>(0).get();
      T* y = pass.output<T>(0).get();
      if (biased_) {
        apply_values(call, broadcast_, x, x, pass.weight(0).get(), pass.weight(1).get(), y,
                     ScaledAndBiased(), fuses_relu_);
      } else {
        scale(call, pass, x, y, fuses_relu_);
      }
    });
  }

  void backward_data(const sdk::Call& call, const sdk::DevicePass& pass) const {
    cuda::with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      const T* dy = pass.output_gradient<T>(0).get();
      if (!trained_ && pass.input_gradient<T>(1).get() != nullptr) {
        factor_gradient<T>(call, pass);
      }
      if (T* dx = pass.input_gradient<T>(0).get()) scale(call, pass, dy, dx, false);
    });
  }

  void backward_weights(const sdk::Call& call, const sdk::DevicePass& pass) const {
    auto* scratch = pass.scratch<double>().get();
    cuda::with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      const T *x = pass.input<T>(0).get(), *dy = pass.output_gradient<T>(0).get();
      if (float* da = pass.weight_gradient(0).get()) {
        sum_values(call, broadcast_, x, dy, ProductOf(), scratch, da, pass.accumulate());
      }
      if (biased_ && pass.weight_gradient(1).get() != nullptr) {
        sum_values(call, broadcast_, dy, dy, SecondOf(), scratch, pass.weight_gradient(1).get(),
                   pass.accumulate());
      }
    });
  }

 private:
  // Trained factors are float32, a second input has the type of the first.
  template <class T>
  void scale(const sdk::Call& call, const sdk::DevicePass& pass, const T* x, T* y,
             bool fuses_relu) const {
    if (trained_) {
      const float* a = pass.weight(0).get();
      apply_values(call, broadcast_, x, x, a, a, y, Scaled(), fuses_relu);
    } else {
      const T* a = pass.input<T>(1).get();
      apply_values(call, broadcast_, x, x, a, a, y, Scaled(), fuses_relu);
    }
  }
  template <class T>
  void factor_gradient(const sdk::Call& call, const sdk::DevicePass& pass) const {
    const T *x = pass.input<T>(0).get(), *dy = pass.output_gradient<T>(0).get();
    T* da = pass.input_gradient<T>(1).get();
    if (broadcast_.one_value_per_element()) {
      const T* a = pass.input<T>(1).get();
      apply_values(call, broadcast_, x, dy, a, a, da, ProductOf());
    } else {
      sum_values(call, broadcast_, x, dy, ProductOf(), pass.scratch<double>().get(), da, false);
    }
  }

  bool biased_;
};

}  // namespace tandem::layers
