// bfloat16 tensors on the cpu: the upper half of a float32. Kernels compute in float32 and round
// once, to nearest, ties to even, when they store. load and store are overloaded so that a kernel
// is one template for both element types.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "plugins/cpu/vector.h"
#include "plugins/sdk.h"

namespace tandem::cpu {

struct bfloat16 {
  uint16_t bits;
};

// The `dtypes` of a kernel of both types.
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
// A NaN stays NaN: it is not rounded, but one of the remaining bits is set.
inline void store(float value, bfloat16& target) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = bits + 0x7fffU + (bits >> 16 & 1U);
  const uint32_t quiet = bits | 0x00400000U;
  const uint32_t is_nan = (bits & 0x7fffffffU) > 0x7f800000U ? 0xffffffffU : 0U;
  target.bits = static_cast<uint16_t>(((rounded & ~is_nan) | (quiet & is_nan)) >> 16);
}

// Converts contiguous elements with the machine's widest vectors. Not every file uses both, and
// clang refuses [[maybe_unused]] for clones.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
TANDEM_CPU_VECTOR static void widen(const bfloat16* source, float* target, int64_t count) {
  for (int64_t i = 0; i < count; ++i) target[i] = load(source[i]);
}
TANDEM_CPU_VECTOR static void narrow(const float* source, bfloat16* target, int64_t count) {
  for (int64_t i = 0; i < count; ++i) store(source[i], target[i]);
}
#pragma GCC diagnostic pop

// body(T{}) with the element type T of the dtype. Throws Refusal for other dtypes.
template <class Body>
void with_elements(int32_t dtype, const Body& body) {
  if (dtype == TANDEM_FLOAT32) return body(float{});
  if (dtype == TANDEM_BFLOAT16) return body(bfloat16{});
  throw sdk::unsupported("computes in float32 and bfloat16, not in dtype ", dtype);
}

}  // namespace tandem::cpu
