// Index arithmetic of kernels on a GPU, the same on host and device: fast divisions, and the
// indices of the elements of a plain tensor. Kernels on a GPU support NCHW and NHWC; blocked
// layouts are for the vector registers of a cpu.
#pragma once

#include <cstdint>

#include "plugins/sdk.h"

namespace tandem::cuda {

// a / b for numbers not below zero. A GPU divides 32 bits several times faster than 64.
TANDEM_HOST_DEVICE inline int64_t quotient(int64_t a, int64_t b) {
  if (((a | b) >> 32) == 0) return static_cast<uint32_t>(a) / static_cast<uint32_t>(b);
  return a / b;
}

// A divisor above zero that is used many times. If both numbers are below 2^31, the division is a
// multiplication and a shift (T. Granlund, P. Montgomery: Division by Invariant Integers using
// Multiplication, 1994).
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
  uint32_t factor_ = 0, shift_ = 0;  // factor 0: the divisor is too large
};
TANDEM_HOST_DEVICE inline int64_t quotient(int64_t a, const Divisor& b) {
  return b.divide(a);
}

// The coordinates of an element.
struct Position {
  int64_t n, c, h, w;
};

// Converts between the index and the coordinates of an element of a tensor.
struct TensorIndex {
  TensorIndex() = default;
  explicit TensorIndex(const tandem_tensor& tensor)
      : channels(tensor.shape.c),
        height(tensor.shape.h),
        width(tensor.shape.w),
        channels_last(tensor.layout == TANDEM_NHWC) {}

  [[nodiscard]] TANDEM_HOST_DEVICE int64_t index(const Position& p) const {
    return channels_last ? ((p.n * height + p.h) * width + p.w) * channels + p.c
                         : ((p.n * channels + p.c) * height + p.h) * width + p.w;
  }
  [[nodiscard]] TANDEM_HOST_DEVICE Position position(int64_t index) const {
    const Divisor& inner = channels_last ? channels : width;
    const Divisor& middle = channels_last ? width : height;
    const Divisor& outer = channels_last ? height : channels;
    const int64_t lines = quotient(index, inner), first = index - lines * inner;
    const int64_t planes = quotient(lines, middle), second = lines - planes * middle;
    const int64_t row = quotient(planes, outer), third = planes - row * outer;
    return channels_last ? Position{row, first, third, second}
                         : Position{row, third, second, first};
  }

  Divisor channels, height, width;
  bool channels_last = false;
};

// For kernels that work on elements in any order: the same layout for input and output.
inline sdk::LayoutOptions plain_layouts() {
  return {{TANDEM_NCHW, TANDEM_NCHW, 0}, {TANDEM_NHWC, TANDEM_NHWC, 0}};
}

}  // namespace tandem::cuda
