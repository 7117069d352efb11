// What a backend refuses of tandem_pixels before it runs them.
#pragma once

#include "plugins/sdk.h"

namespace tandem::pixels {

// Refusal for shapes that tandem_pixels cannot say the means of.
inline void require_shape(const tandem_shape& shape) {
  if (shape.c >= 1 && shape.c <= 4 && shape.n >= 0 && shape.h >= 0 && shape.w >= 0) return;
  throw sdk::invalid("pixels of ", shape.n, "x", shape.c, "x", shape.h, "x", shape.w,
                     ": pictures have 1 to 4 channels, and no side below 0");
}

}  // namespace tandem::pixels
