// Index arithmetic of kernels on a gpu, the same on host and device: divisions that are cheap where
// numbers are small, and where the elements of a plain tensor lie. Kernels here take NCHW and NHWC;
// blocked layouts are for a cpu's vector registers.
#pragma once

#include <cstdint>

#include "plugins/sdk.h"

namespace tandem::cuda {

// Of numbers not below zero. A gpu divides 32 bits several times faster than 64.
TANDEM_HOST_DEVICE inline int64_t quotient(int64_t a, int64_t b) {
  if (((a | b) >> 32) == 0) return static_cast<uint32_t>(a) / static_cast<uint32_t>(b);
  return a / b;
}
TANDEM_HOST_DEVICE inline int64_t remainder(int64_t a, int64_t b) {
  return a - quotient(a, b) * b;
}

struct Place {
  int64_t n, c, h, w;
};

// The elements of a tensor of `channels` x `height` x `width` a row.
struct Grid {
  Grid() = default;
  explicit Grid(const tandem_tensor& tensor)
      : channels(tensor.shape.c),
        height(tensor.shape.h),
        width(tensor.shape.w),
        channels_last(tensor.layout == TANDEM_NHWC) {}

  [[nodiscard]] TANDEM_HOST_DEVICE int64_t index(const Place& p) const {
    return channels_last ? ((p.n * height + p.h) * width + p.w) * channels + p.c
                         : ((p.n * channels + p.c) * height + p.h) * width + p.w;
  }
  // Of the element that lies at `index`.
  [[nodiscard]] TANDEM_HOST_DEVICE Place place(int64_t index) const {
    const int64_t inner = channels_last ? channels : width;
    const int64_t middle = channels_last ? width : height;
    const int64_t outer = channels_last ? height : channels;
    const int64_t lines = quotient(index, inner), first = index - lines * inner;
    const int64_t planes = quotient(lines, middle), second = lines - planes * middle;
    const int64_t row = quotient(planes, outer), third = planes - row * outer;
    return channels_last ? Place{row, first, third, second} : Place{row, third, second, first};
  }

  int64_t channels = 1, height = 1, width = 1;
  bool channels_last = false;
};

// For kernels that take elements in either order, input as output.
inline sdk::LayoutOptions plain_layouts() {
  return {{TANDEM_NCHW, TANDEM_NCHW, 0}, {TANDEM_NHWC, TANDEM_NHWC, 0}};
}

}  // namespace tandem::cuda
