// Kernels on the cpu with a fused ReLU (tandem_binding.fused_activation). The ReLU is applied to
// the value after its rounding to the stored type, so that the bits are those of a separate ReLU
// layer. And the gradient of a ReLU before a layer (tandem_binding.activation_before).
#pragma once

#include <cstdint>

#include "plugins/cpu/bfloat16.h"
#include "plugins/sdk.h"

namespace tandem::cpu {

using sdk::relu_only;

// The ReLU of a value after its rounding to T. A NaN stays NaN.
template <class T>
float rounded_relu(float value) {
  T stored;
  store(value, stored);
  const float rounded = load(stored);
  return rounded < 0 ? 0.0F : rounded;
}

// The gradient of the values before a ReLU that made x: dx where x is above zero.
template <class T>
void pass_through_relu(const T* x, T* dx, int64_t count) {
  for (int64_t i = 0; i < count; ++i) dx[i] = load(x[i]) > 0 ? dx[i] : T{};
}

// body(function), or body(function followed by a ReLU): two loops, neither of which contains the
// choice.
template <class T, class Function, class Body>
void with_fused_relu(bool fuses_relu, const Function& function, const Body& body) {
  if (!fuses_relu) return body(function);
  body([=](auto... values) { return rounded_relu<T>(function(values...)); });
}

}  // namespace tandem::cpu
