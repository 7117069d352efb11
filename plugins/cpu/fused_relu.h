// Kernels on the cpu with a fused ReLU (tandem_binding.fused_activation). The ReLU is applied to
// the value after its rounding to the stored type, so that the bits are those of a separate ReLU
// layer. And the gradient of a ReLU before a layer (tandem_binding.activation_before).
#pragma once

#include <cstdint>

#include "plugins/cpu/bfloat16.h"
#include "plugins/cpu/team.h"
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

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
// The ReLU of stored values, in place. The bfloat16 below zero have the bits from those of the
// negative number next to zero to those of -infinity.
TANDEM_CPU_VECTOR static void rectify(float* y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) y[i] = y[i] < 0 ? 0.0F : y[i];
}
TANDEM_CPU_VECTOR static void rectify(bfloat16* y, int64_t count) {
  constexpr uint16_t next_to_zero = 0x8001, numbers = 0x7f80;
  for (int64_t i = 0; i < count; ++i) {
    const auto beyond = static_cast<uint16_t>(y[i].bits - next_to_zero);
    y[i].bits = beyond < numbers ? uint16_t{0} : y[i].bits;
  }
}

// The gradient of the values before a ReLU that made x: dx where x is above zero. Of bfloat16 these
// are the bits from those of the least number to those of infinity.
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

// Both for whole tensors, on up to `threads` threads: for kernels of libraries, whose own fused
// ReLU may lose a NaN.
static void rectify(int32_t threads, int32_t dtype, void* y, int64_t count) {
  with_elements(dtype, [&](auto element) {
    auto* all = static_cast<decltype(element)*>(y);
    for_ranges(threads, count,
               [=](int64_t begin, int64_t end) { rectify(all + begin, end - begin); });
  });
}
static void pass_through_relu(int32_t threads, int32_t dtype, const void* x, void* dx,
                              int64_t count) {
  with_elements(dtype, [&](auto element) {
    using T = decltype(element);
    const auto* made = static_cast<const T*>(x);
    auto* gradient = static_cast<T*>(dx);
    for_ranges(threads, count, [=](int64_t begin, int64_t end) {
      pass_through_relu(made + begin, gradient + begin, end - begin);
    });
  });
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
