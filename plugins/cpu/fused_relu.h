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

// The gradient of the values before a ReLU that made x: dx where x is above zero. Of bfloat16 these
// are the bits from those of the least number to those of infinity.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
TANDEM_CPU_VECTOR static void pass_through_relu(const float* x, float* dx, int64_t count) {
  for (int64_t i = 0; i < count; ++i) dx[i] = x[i] > 0 ? dx[i] : 0.0F;
}
TANDEM_CPU_VECTOR static void pass_through_relu(const bfloat16* x, bfloat16* dx, int64_t count) {
  constexpr uint16_t infinity = 0x7f80;
  for (int64_t i = 0; i < count; ++i) {
    const auto above_least = static_cast<uint16_t>(x[i].bits - 1U);
    dx[i].bits = above_least < infinity ? dx[i].bits : uint16_t{0};
  }
}
#pragma GCC diagnostic pop

// body(function), or body(function followed by a ReLU): two loops, neither of which contains the
// choice.
template <class T, class Function, class Body>
void with_fused_relu(bool fuses_relu, const Function& function, const Body& body) {
  if (!fuses_relu) return body(function);
  body([=](auto... values) { return rounded_relu<T>(function(values...)); });
}

}  // namespace tandem::cpu
