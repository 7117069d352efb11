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

class BiasCuda : public sdk::Needs {
 public:
  BiasCuda(const sdk::Binding& binding, const sdk::Call&)
      : broadcast_(binding.input(0), axes_of(binding)),
        dtype_(binding.input(0).dtype),
        trained_(binding.input_count() == 1),
        fuses_relu_(fuses_relu(binding)) {
    if (trained_ || !broadcast_.one_value_per_element()) {
      scratch_bytes = sums_over(broadcast_).scratch_bytes();
    }
  }

  static constexpr uint32_t dtypes = cuda::all_dtypes;
  static constexpr uint64_t fused_activations = relu_only;

  static sdk::LayoutOptions layouts(const sdk::Binding& binding) {
    return cuda_layouts_for(binding);
  }

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

  Broadcast broadcast_;
  int32_t dtype_;
  bool trained_, fuses_relu_;
};

}  // namespace tandem::layers
