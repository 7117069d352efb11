// The memory offsets of the elements of a logical N,C,H,W tensor in each of the ABI's layouts.
// Every layout consists of rows of (channel block, h, w, channel within the block); plain NCHW has
// blocks of one channel, NHWC has one block of all channels.
#pragma once

#include <cstdint>

#include "plugins/sdk.h"

namespace tandem::cpu {

inline int64_t block_of(int32_t layout, int64_t channels) {
  switch (layout) {
    case TANDEM_NHWC:
      return channels;
    case TANDEM_NCHW8C:
      return 8;
    case TANDEM_NCHW16C:
      return 16;
    default:
      return 1;
  }
}

struct Placement {
  explicit Placement(const tandem_tensor& tensor)
      : shape(tensor.shape), block(block_of(tensor.layout, tensor.shape.c)) {}

  [[nodiscard]] TANDEM_HOST_DEVICE int64_t row_size() const { return shape.c * shape.h * shape.w; }
  // Within a row, in elements.
  [[nodiscard]] TANDEM_HOST_DEVICE int64_t offset(int64_t c, int64_t h, int64_t w) const {
    return ((c / block * shape.h + h) * shape.w + w) * block + c % block;
  }

  tandem_shape shape;
  int64_t block;
};

// A tensor of 1x1 images has the same memory in every layout, and its layout is called NCHW. oneDNN
// expects it to be called by the layout of its neighbor.
inline tandem_tensor named_as(tandem_tensor tensor, const tandem_tensor& neighbor) {
  const bool one_by_one = tensor.shape.h == 1 && tensor.shape.w == 1;
  const bool fits = tensor.shape.c % block_of(neighbor.layout, tensor.shape.c) == 0;
  if (one_by_one && fits) tensor.layout = neighbor.layout;
  return tensor;
}

}  // namespace tandem::cpu
