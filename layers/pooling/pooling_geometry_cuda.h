// The windows of a pooling in device code.
#pragma once

#include "layers/pooling/pooling.h"
#include "plugins/cuda/indexing.h"

namespace tandem::layers {

// One axis of the windows.
struct PoolingAxis {
  int64_t extent, windows, kernel;
  cuda::Divisor stride;
  int64_t pad;

  struct Range {
    int64_t begin, end;
  };
  // The part of window `window` inside the image.
  [[nodiscard]] TANDEM_HOST_DEVICE Range inside(int64_t window) const {
    const int64_t begin = window * stride - pad, end = begin + kernel;
    return {begin < 0 ? 0 : begin, end < extent ? end : extent};
  }
  // The length of its part inside the padded image.
  [[nodiscard]] TANDEM_HOST_DEVICE int64_t padded_length(int64_t window) const {
    const int64_t begin = window * stride - pad, end = begin + kernel;
    return (end < extent + pad ? end : extent + pad) - begin;
  }
  // The windows that contain pixel `pixel`.
  [[nodiscard]] TANDEM_HOST_DEVICE Range windows_of(int64_t pixel) const {
    const int64_t place = pixel + pad;  // at least 0
    const int64_t begin = place < kernel ? 0 : cuda::quotient(place - kernel, stride) + 1;
    const int64_t end = cuda::quotient(place, stride) + 1;
    return {begin, end < windows ? end : windows};
  }
};

struct PoolingGeometry {
  explicit PoolingGeometry(const sdk::Binding& binding, const Window& window)
      : input(binding.input(0)),
        output(binding.output(0)),
        h{input.height, output.height, window.kernel.h, window.stride.h, window.pad.h},
        w{input.width, output.width, window.kernel.w, window.stride.w, window.pad.w} {}

  cuda::TensorIndex input, output;
  PoolingAxis h, w;
};

}  // namespace tandem::layers
