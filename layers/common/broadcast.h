// How an array of values is broadcast over a tensor: one value per channel, for example, or one for
// every (c, h). The tensor's memory is seen as tiles of `pixels` x `width` elements: element (p, k)
// of tile t has value (t % period) * width + k.
#pragma once

#include <algorithm>
#include <cstdint>

#include "plugins/cpu/layout.h"
#include "plugins/sdk.h"

namespace tandem::layers {

// The axes [first, first + count) of N, C, H, W; count 0: one value for all elements.
struct CoveredAxes {
  int64_t first = 1, count = 1;

  [[nodiscard]] int64_t end() const { return first + count; }
  [[nodiscard]] bool covers_all() const { return first == 0 && count == 4; }
  // True if the elements may lie in any order: every element has its own value, all of a row have
  // the same one, or there is one per channel.
  [[nodiscard]] bool fits_any_layout() const {
    return count == 0 || end() == 1 || end() == 2 || covers_all();
  }
};

struct Broadcast {
  int64_t tiles, pixels, width, period;

  Broadcast(const tandem_tensor& tensor, const CoveredAxes& axes) {
    const sdk::Shape& s = tensor.shape;
    const int64_t row = s.c * s.h * s.w;
    const int64_t block = cpu::block_of(tensor.layout, s.c);
    if (axes.count == 0 || axes.end() == 1) {
      set(s.n, row, 1, axes.count == 0 ? 1 : s.n);
    } else if (axes.covers_all()) {
      set(s.n, 1, row, s.n);
    } else if (axes.end() == 2 && tensor.layout == TANDEM_NHWC && axes.first == 1) {
      const int64_t pixels = tile_pixels(s.h * s.w);
      set(s.n * (s.h * s.w / pixels), pixels, s.c, 1);
    } else if (axes.end() == 2 && block > 1) {
      const int64_t blocks = s.c / block;
      set(s.n * blocks, s.h * s.w, block, axes.first == 0 ? s.n * blocks : blocks);
    } else {
      set_plain(s, axes);
    }
  }

  [[nodiscard]] int64_t elements() const { return tiles * pixels * width; }
  [[nodiscard]] int64_t values() const { return period * width; }
  [[nodiscard]] int64_t repeats() const { return tiles / period; }
  [[nodiscard]] bool one_value_per_element() const { return tiles == period && pixels == 1; }

 private:
  // The fewest pixels that divide an image of so many, but enough to be summed in float.
  static int64_t tile_pixels(int64_t image) {
    constexpr int64_t enough = 64;
    int64_t pixels = std::min(enough, image);
    while (image % pixels != 0) ++pixels;
    return pixels;
  }
  void set(int64_t t, int64_t p, int64_t w, int64_t every) {
    tiles = t;
    pixels = p;
    width = w;
    period = every;
  }
  void set_plain(const sdk::Shape& s, const CoveredAxes& axes) {
    const int64_t extents[4] = {s.n, s.c, s.h, s.w};
    int64_t outer = 1, middle = 1, inner = 1;
    for (int64_t i = 0; i < 4; ++i) {
      (i < axes.first ? outer : i < axes.end() ? middle : inner) *= extents[i];
    }
    if (inner > 1) {
      set(outer * middle, inner, 1, middle);
    } else if (axes.first == 0) {
      set(s.n, 1, middle / s.n, s.n);
    } else {
      set(outer, 1, middle, 1);
    }
  }
};

}  // namespace tandem::layers
