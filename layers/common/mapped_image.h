// Images of another size, of which each row is made of up to two rows of the input and each column
// of up to two columns: what Pad and Upsample have in common. Their settings have an axis `h` and
// an axis `w` with these members, and the `value` of pixels that are made of none:
//   int64_t input, output;                 // extents
//   PixelSource source(int64_t i) const;   // of pixel i of the output
//   static constexpr int ranges;           // the pixels of the output that may be made of pixel
//   PixelRange targets(int64_t at, int which) const;  // `at` of the input are in so many ranges
//   int64_t only_copy() const;             // where the input lies as it is, all else of `value`:
//   the
//                                          // pixel of the output that is the first; else -1
#pragma once

#include <cstdint>

#include "plugins/sdk.h"

namespace tandem::layers {

struct PixelSource {
  int64_t first, second;  // -1: none
  float second_share;

  // Of pixel `at` of the input.
  [[nodiscard]] TANDEM_HOST_DEVICE float share(int64_t at) const {
    return (first == at ? 1 - second_share : 0) + (second == at ? second_share : 0);
  }
};

// [begin, end)
struct PixelRange {
  int64_t begin, end;
};

}  // namespace tandem::layers
