// The planes of pixel_planes.h in bfloat16, with the channels of a pixel next to each other: a
// tile's depths are channels. An image of few channels is folded: the depths that a row of the
// kernel reads lie next to each other there, and the pixels of a stride count as one.
#pragma once

#include <cstdint>
#include <vector>

#include "layers/convolution/pixel_planes.h"
#include "plugins/cpu/bfloat16.h"

namespace tandem::layers {

// Some channels of an image in NHWC, of which a pixel has `stride`.
struct TileImage {
  const cpu::bfloat16* pixels;
  int64_t channels, stride;
};

// The input's planes of a forward pass.
struct TilePlanes {
  // As pixel_planes.h has them; `multiple`: of pixels, at a time.
  static TilePlanes of_channels(PixelAxis height, PixelAxis width, int64_t channels,
                                int64_t multiple);
  // Of an image of few channels.
  static TilePlanes folded(const Window& window, const sdk::Shape& in, const sdk::Shape& out,
                           int64_t multiple);

  PixelPlanes planes;
  int64_t pixel;  // values of a pixel of a plane
  int64_t depth;  // that a tap reads, a multiple of a tile's
  bool folds;

  // A tap is a point of the kernel, or if it folds a row of one.
  struct Tap {
    int64_t point, plane, place;  // place: pixels from where the plane begins
  };
  [[nodiscard]] std::vector<Tap> taps(const Axes& kernel) const;
  // Of a plane, with what lies behind it that is read.
  [[nodiscard]] int64_t values() const;

  // A band of an image, source phase `plane`, with zeros where there are no pixels.
  void load(int64_t plane, int64_t band, const TileImage& image, cpu::bfloat16* target) const;

 private:
  void load_row(int64_t column_phase, const TileImage& image, const cpu::bfloat16* row,
                cpu::bfloat16* target) const;
};

// The target's pixels of a band, as a plane with zeros between its rows, for one target phase:
// `pixel` values each.
void load_tile_target(const PixelPlanes& planes, int64_t band, const TileImage& image,
                      int64_t pixel, int64_t values, cpu::bfloat16* target);

}  // namespace tandem::layers
