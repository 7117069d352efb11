// Tensors of bfloat16 on the cpu: the upper half of a float32. Kernels compute in float32 and round
// once, to the nearest and of two equally near to the even one, when they store. Written so that a
// kernel is one template for both types of element.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "plugins/cpu/vector.h"
#include "plugins/pass_elements.h"
#include "plugins/sdk.h"

namespace tandem::cpu {

struct bfloat16 {
  uint16_t bits;
};

// What a kernel of both types says as its `dtypes`.
constexpr uint32_t float32_and_bfloat16 = 1U << TANDEM_FLOAT32 | 1U << TANDEM_BFLOAT16;

inline float load(float value) {
  return value;
}
inline float load(bfloat16 value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value.bits) << 16);
}

inline void store(float value, float& target) {
  target = value;
}
// What is not a number stays so: its last bits are not rounded, but one of the kept ones is set.
inline void store(float value, bfloat16& target) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = bits + 0x7fffU + (bits >> 16 & 1U);
  const uint32_t quiet = bits | 0x00400000U;
  const uint32_t is_nan = (bits & 0x7fffffffU) > 0x7f800000U ? 0xffffffffU : 0U;
  target.bits = static_cast<uint16_t>(((rounded & ~is_nan) | (quiet & is_nan)) >> 16);
}

// Whole runs of elements, at the machine's width.
[[maybe_unused]] TANDEM_CPU_VECTOR static void widen(const bfloat16* source, float* target,
                                                     int64_t count) {
  for (int64_t i = 0; i < count; ++i) target[i] = load(source[i]);
}
[[maybe_unused]] TANDEM_CPU_VECTOR static void narrow(const float* source, bfloat16* target,
                                                      int64_t count) {
  for (int64_t i = 0; i < count; ++i) store(source[i], target[i]);
}

using sdk::input;
using sdk::input_gradient;
using sdk::output;
using sdk::output_gradient;

// body(T{}) with T the type of a binding's elements. Throws Refusal for other dtypes.
template <class Body>
void with_elements(int32_t dtype, const Body& body) {
  if (dtype == TANDEM_FLOAT32) return body(float{});
  if (dtype == TANDEM_BFLOAT16) return body(bfloat16{});
  throw sdk::unsupported("computes in float32 and bfloat16, not in dtype ", dtype);
}

}  // namespace tandem::cpu
