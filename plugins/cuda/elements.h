// The element types of tensors on a GPU: float32, bfloat16 and float16. Kernels compute in float32
// and round once, to nearest, ties to even, when they store. load and store are overloaded so that
// a kernel is one template for all three types. They give the same bits on host and device.
#pragma once

#include <bit>
#include <cstdint>

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

#include "plugins/sdk.h"

namespace tandem::cuda {

struct bfloat16 {
  uint16_t bits;
};
struct float16 {
  uint16_t bits;
};

// The `dtypes` of a kernel of all three types.
constexpr uint32_t all_dtypes = 1U << TANDEM_FLOAT32 | 1U << TANDEM_BFLOAT16 | 1U << TANDEM_FLOAT16;

TANDEM_HOST_DEVICE inline float load(float value) {
  return value;
}
TANDEM_HOST_DEVICE inline float load(bfloat16 value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value.bits) << 16);
}
TANDEM_HOST_DEVICE inline float load(float16 value) {
#ifdef __CUDA_ARCH__
  return __half2float(__ushort_as_half(value.bits));
#else
  constexpr uint32_t infinite = 0x7c00U, sign = 0x8000U;
  const uint32_t magnitude = value.bits & ~sign, exponent = magnitude & infinite;
  // The exponent bias is 15 here and 127 there: times 2^112.
  const float small = std::bit_cast<float>(magnitude << 13) * 0x1p112F;
  const uint32_t bits =
      exponent == infinite ? 0x7f800000U | magnitude << 13 : std::bit_cast<uint32_t>(small);
  return std::bit_cast<float>(bits | (value.bits & sign) << 16);
#endif
}

TANDEM_HOST_DEVICE inline void store(float value, float& target) {
  target = value;
}
TANDEM_HOST_DEVICE inline void store(float value, bfloat16& target) {
#ifdef __CUDA_ARCH__
  target.bits = __bfloat16_as_ushort(__float2bfloat16_rn(value));
#else
  const auto bits = std::bit_cast<uint32_t>(value);
  const bool is_nan = (bits & 0x7fffffffU) > 0x7f800000U;
  // A NaN must not become infinite.
  const uint32_t rounded = is_nan ? bits | 0x00400000U : bits + 0x7fffU + (bits >> 16 & 1U);
  target.bits = static_cast<uint16_t>(rounded >> 16);
#endif
}
TANDEM_HOST_DEVICE inline void store(float value, float16& target) {
#ifdef __CUDA_ARCH__
  target.bits = __half_as_ushort(__float2half_rn(value));
#else
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7fffffffU;
  uint32_t half = 0;
  if (magnitude > 0x7f800000U) {
    half = 0x7e00U;
  } else if (magnitude >= 0x477ff000U) {  // 65520 is nearer to 2^16 than to the largest float16
    half = 0x7c00U;
    // below 2^-14 the steps are 2^-24, like those of float32 at 1/2
  } else if (magnitude < 0x38800000U) {
    half = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - 0x3f000000U;
  } else {
    half = (magnitude - (112U << 23) + 0xfffU + (magnitude >> 13 & 1U)) >> 13;
  }
  target.bits = static_cast<uint16_t>(half | (bits >> 16 & 0x8000U));
#endif
}

// body(T{}) with the element type T of the dtype. Throws Refusal for other dtypes.
template <class Body>
void with_elements(int32_t dtype, const Body& body) {
  switch (dtype) {
    case TANDEM_FLOAT32:
      return body(float{});
    case TANDEM_BFLOAT16:
      return body(bfloat16{});
    case TANDEM_FLOAT16:
      return body(float16{});
    default:
      throw sdk::unsupported("computes in float32, bfloat16 and float16, not in dtype ", dtype);
  }
}

}  // namespace tandem::cuda
