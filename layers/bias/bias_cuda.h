// Bias on NVIDIA GPUs.
#pragma once

#include "layers/bias/bias.h"
#include "layers/common/broadcast_cuda.h"

namespace tandem::layers {

struct AddedBias {
  TANDEM_HOST_DEVICE float operator()(float x, float, float bias, float) const { return x + bias; }
};
struct SecondOf {
  static constexpr bool is_of_one = true;
  TANDEM_HOST_DEVICE float operator()(float, float g) const { return g; }
};

class BiasCuda : public BroadcastKernelCuda {
 public:
  BiasCuda(const sdk::Binding& binding, const sdk::Call&) : BroadcastKernelCuda(binding) {}

  void forward(const sdk::Call& call, const sdk::DevicePass& pass) const {
    cuda::with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      const T* x = pass.input<T>(0).get();
      T* y = pass.output<T>(0).get();
      if (trained_) {
        const float* b = pass.weight(0).get();
        apply_values(call, broadcast_, x, x, b, b, y, AddedBias(), fuses_relu_);
      } else {
        const T* b = pass.input<T>(1).get();
        apply_values(call, broadcast_, x, x, b, b, y, AddedBias(), fuses_relu_);
      }
    });
  }

  void backward_data(const sdk::Call& call, const sdk::DevicePass& pass) const {
    cuda::with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      const T* dy = pass.output_gradient<T>(0).get();
      if (!trained_ && pass.input_gradient<T>(1).get() != nullptr) {
        sum_to_input<T>(call, pass);
      }
      if (T* dx = pass.input_gradient<T>(0).get()) {
        cuda::copy(call, dy, dx, broadcast_.elements());
      }
    });
  }

  // Only weight gradients may be accumulated.
  void backward_weights(const sdk::Call& call, const sdk::DevicePass& pass) const {
    cuda::with_elements(dtype_, [&](auto element) {
      const auto* dy = pass.output_gradient<decltype(element)>(0).get();
      sum_values(call, broadcast_, dy, dy, SecondOf(), pass.scratch<double>().get(),
                 pass.weight_gradient(0).get(), pass.accumulate());
    });
  }

 private:
  template <class T>
  void sum_to_input(const sdk::Call& call, const sdk::DevicePass& pass) const {
    const T* dy = pass.output_gradient<T>(0).get();
    T* target = pass.input_gradient<T>(1).get();
    if (broadcast_.one_value_per_element()) {
      return cuda::copy(call, dy, target, broadcast_.elements());
    }
    sum_values(call, broadcast_, dy, dy, SecondOf(), pass.scratch<double>().get(), target, false);
  }
};

}  // namespace tandem::layers
