// The checks of tandem_pixels that every backend makes.
#pragma once

#include "plugins/sdk.h"

namespace tandem::pixels {

// Throws Refusal for shapes with more channels than means.
inline void require_shape(const tandem_shape& shape) {
  if (shape.c >= 1 && shape.c <= 4 && shape.n >= 0 && shape.h >= 0 && shape.w >= 0) return;
  throw sdk::invalid("pixels of ", shape.n, "x", shape.c, "x", shape.h, "x", shape.w,
                     ": images have 1 to 4 channels, and no negative extent");
}

}  // namespace tandem::pixels
