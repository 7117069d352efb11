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

// A number above zero that is divided by again and again: a division by it is a multiplication and
// a shift, where both numbers are below 2^31. T. Granlund, P. Montgomery: Division by Invariant
// Integers using Multiplication, 1994.
class Divisor {
 public:
  Divisor(int64_t value = 1) : value_(value) {
    if (value >= int64_t{1} << 31) return;
    while ((int64_t{1} << shift_) < value) ++shift_;
    const uint64_t excess = (uint64_t{1} << shift_) - static_cast<uint64_t>(value);
    factor_ = static_cast<uint32_t>((excess << 32) / static_cast<uint64_t>(value) + 1);
  }
  TANDEM_HOST_DEVICE operator int64_t() const { return value_; }

  [[nodiscard]] TANDEM_HOST_DEVICE int64_t divide(int64_t a) const {
    if ((a >> 31) != 0 || factor_ == 0) return quotient(a, value_);
    const auto small = static_cast<uint32_t>(a);
    const auto high = static_cast<uint32_t>((static_cast<uint64_t>(small) * factor_) >> 32);
    return (high + small) >> shift_;
  }

 private:
  int64_t value_;
  uint32_t factor_ = 0, shift_ = 0;  // factor 0: too large a number
};
TANDEM_HOST_DEVICE inline int64_t quotient(int64_t a, const Divisor& b) {
  return b.divide(a);
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
    const Divisor& inner = channels_last ? channels : width;
    const Divisor& middle = channels_last ? width : height;
    const Divisor& outer = channels_last ? height : channels;
    const int64_t lines = quotient(index, inner), first = index - lines * inner;
    const int64_t planes = quotient(lines, middle), second = lines - planes * middle;
    const int64_t row = quotient(planes, outer), third = planes - row * outer;
    return channels_last ? Place{row, first, third, second} : Place{row, third, second, first};
  }

  Divisor channels, height, width;
  bool channels_last = false;
};

// For kernels that take elements in either order, input as output.
inline sdk::LayoutOptions plain_layouts() {
  return {{TANDEM_NCHW, TANDEM_NCHW, 0}, {TANDEM_NHWC, TANDEM_NHWC, 0}};
}

}  // namespace tandem::cuda
