// LRN across channels on the cpu, in every layout, by Caffe's formulas:
//   s = k + alpha / size * (sum of x^2 over the channels about it),  y = x s^-beta
//   dx = dy s^-beta - 2 alpha beta / size * x * (sum of dy x s^(-beta - 1) over those channels)
// Backward computes s anew from x, which takes less time than fetching it from memory, and no
// memory. The same bits for any number of threads.
#pragma once

#include <cstdint>

#include "plugins/cpu/layout.h"
#include "plugins/sdk.h"

namespace tandem::layers {

class AcrossChannelsLrn {
 public:
  AcrossChannelsLrn(const sdk::Attributes& attributes, const tandem_tensor& tensor);

  // Of a pass on so many threads.
  [[nodiscard]] int64_t scratch_bytes(int32_t threads) const;
  void forward(const sdk::Call& call, const float* x, float* y, float* scratch) const;
  void backward(const sdk::Call& call, const float* x, const float* dy, float* dx,
                float* scratch) const;

  // A tile is some pixels of one image with all of their channels: an array that stays in the
  // cache, with channels beside each other (plain NCHW: pixels), and zeros before the first channel
  // and behind the last, so that the sum over neighbours is the same for all.
  struct Tile {
    int64_t groups, block;                   // blocks of channels, and their extent
    int64_t area;                            // pixels of the image
    int64_t pixels;                          // of this tile
    int64_t group_step, pixel_step, stride;  // from a block, pixel, channel to the next, in it
  };
  struct Terms {
    int64_t half;  // channels on each side of one
    float share, beta, constant;
  };

 private:
  [[nodiscard]] int64_t tile_floats() const;
  template <class Body>
  void for_tiles(const sdk::Call& call, float* scratch, int arrays, const Body& body) const;

  cpu::Placement placement_;
  Tile tile_;  // the largest
  Terms terms_;
};

}  // namespace tandem::layers
