// What a picture's byte becomes, the same code on host and device. A difference, then a product:
// there is nothing to fuse, so that it is the same bits everywhere.
#pragma once

#include <cstdint>

#include "plugins/random.h"  // TANDEM_HOST_DEVICE

namespace tandem::pixels {

TANDEM_HOST_DEVICE inline float value_of(uint8_t byte, float mean, float scale) {
  return (static_cast<float>(byte) - mean) * scale;
}

}  // namespace tandem::pixels
