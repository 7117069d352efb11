// Makes the stand-ins' use of TF32 visible.
#pragma once

#include <bit>
#include <cstdint>

namespace tandem::cuda {

// A factor, truncated to the 11 significant bits of TF32 (a GPU rounds to nearest); unchanged if
// TF32 is not allowed.
inline float rounded_to_tf32(float value, bool is_allowed) {
  if (!is_allowed) return value;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) & 0xffffe000U);
}

}  // namespace tandem::cuda
