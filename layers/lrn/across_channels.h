// LRN across channels on the cpu, in every layout, of float32 and bfloat16, by Caffe's formulas:
//   s = k + alpha / size * (sum of x^2 over the neighboring channels),  y = x s^-beta
//   dx = dy s^-beta - 2 alpha beta / size * x * (sum of dy x s^(-beta - 1) over those channels)
// The backward pass computes s again from x, which is faster than reading it from memory and saves
// that memory. The bits are the same for any number of threads.
#pragma once

#include <cstdint>

#include "plugins/cpu/layout.h"
#include "plugins/sdk.h"

namespace tandem::layers {

class AcrossChannelsLrn {
 public:
  // `follows_relu`: backward_data applies the gradient of a ReLU before the layer, too.
  AcrossChannelsLrn(const sdk::Attributes& attributes, const tandem_tensor& tensor,
                    bool follows_relu);

  // Of a pass with this number of threads.
  [[nodiscard]] int64_t scratch_bytes(int32_t threads) const;
  void forward(const sdk::Call& call, const sdk::Pass& pass) const;
  void backward_data(const sdk::Call& call, const sdk::Pass& pass) const;

  // A tile is some pixels of one image with all of their channels, in arrays that stay in the
  // cache. Neighbors in memory are channels (pixels in plain NCHW). There are zeros before the
  // first channel and after the last, so that the sum over neighbors needs no special cases.
  struct Tile {
    int64_t groups, block;  // blocks of channels, and their extent
    int64_t area;           // pixels of the image
    int64_t pixels;         // of this tile
    // distance to the next block, pixel, channel in the tile
    int64_t group_step, pixel_step, stride;
  };
  struct Terms {
    int64_t half;  // neighbors on each side
    float scale, beta, constant;
  };

 private:
  [[nodiscard]] int64_t tile_floats() const;
  template <class Body>
  void for_tiles(const sdk::Call& call, float* scratch, int arrays, const Body& body) const;

  cpu::Placement placement_;
  int32_t dtype_;
  Tile tile_;  // the largest one
  Terms terms_;
  bool follows_relu_;
};

}  // namespace tandem::layers
