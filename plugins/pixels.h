// The conversion of a byte of an image, the same code on host and device. A difference and then a
// product cannot be fused, so that the bits are the same everywhere.
#pragma once

#include <cstdint>

#include "plugins/random.h"  // TANDEM_HOST_DEVICE

namespace tandem::pixels {

TANDEM_HOST_DEVICE inline float value_of(uint8_t byte, float mean, float scale) {
  return (static_cast<float>(byte) - mean) * scale;
}

}  // namespace tandem::pixels
