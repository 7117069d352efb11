// PReLU on NVIDIA GPUs.
#pragma once

#include "layers/common/broadcast_cuda.h"
#include "layers/prelu/prelu.h"

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
      : broadcast_(binding.input(0), ParametricRelu::axes(binding.attributes)),
        dtype_(binding.input(0).dtype) {
    if (binding.has(TANDEM_WANTS_BACKWARD_WEIGHTS)) {
      scratch_bytes = sums_over(broadcast_).scratch_bytes();
    }
  }

  static constexpr uint32_t dtypes = cuda::all_dtypes;

  static sdk::LayoutOptions layouts(const sdk::Binding&) { return cuda::plain_layouts(); }

  void forward(const sdk::Call& call, const sdk::DevicePass& pass) const {
    const float* slopes = pass.weight(0).get();
    cuda::with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      const T* x = pass.input<T>(0).get();
      apply_values(call, broadcast_, x, x, slopes, slopes, pass.output<T>(0).get(), PreluValue());
    });
  }
  void backward_data(const sdk::Call& call, const sdk::DevicePass& pass) const {
    const float* slopes = pass.weight(0).get();
    cuda::with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      apply_values(call, broadcast_, pass.input<T>(0).get(), pass.output_gradient<T>(0).get(),
                   slopes, slopes, pass.input_gradient<T>(0).get(), PreluGradient());
    });
  }
  void backward_weights(const sdk::Call& call, const sdk::DevicePass& pass) const {
    cuda::with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      sum_values(call, broadcast_, pass.input<T>(0).get(), pass.output_gradient<T>(0).get(),
                 PreluSlopeGradient(), pass.scratch<double>().get(), pass.weight_gradient(0).get(),
                 pass.accumulate());
    });
  }

 private:
  Broadcast broadcast_;
  int32_t dtype_;
};

}  // namespace tandem::layers
