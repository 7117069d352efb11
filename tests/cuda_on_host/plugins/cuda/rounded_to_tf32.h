// How the stand-ins' products show that they may use TF32.
#pragma once

#include <bit>
#include <cstdint>

namespace tandem::cuda {

// A factor cut to the 11 significant bits of TF32 (a GPU rounds to the nearest), or, where TF32 is
// not allowed, as it is.
inline float rounded_to_tf32(float value, bool is_allowed) {
  if (!is_allowed) return value;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) & 0xffffe000U);
}

}  // namespace tandem::cuda
