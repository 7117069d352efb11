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

// A divisor above zero that is used many times. The division of a number not below zero is a
// multiplication and a shift, without a branch (T. Granlund, P. Montgomery: Division by Invariant
// Integers using Multiplication, 1994).
class Divisor {
 public:
  Divisor(int64_t value = 1) : value_(value) {
    if (value <= 1) return;
    while ((int64_t{2} << shift_) < value) ++shift_;
    // 2^(64 + shift) / value, rounded up, which is below 2^64: exact for all numbers below 2^63.
    const Wide power = Wide{1} << (64 + shift_);
    factor_ = static_cast<uint64_t>((power - 1) / static_cast<Wide>(value) + 1);
  }
  TANDEM_HOST_DEVICE operator int64_t() const { return value_; }

  [[nodiscard]] TANDEM_HOST_DEVICE int64_t divide(int64_t a) const {
    const auto number = static_cast<uint64_t>(a);
#ifdef __CUDA_ARCH__
    const uint64_t high = __umul64hi(number, factor_);
#else
    const auto high = static_cast<uint64_t>((static_cast<Wide>(number) * factor_) >> 64);
#endif
    return factor_ == 0 ? a : static_cast<int64_t>(high >> shift_);
  }

 private:
  __extension__ typedef unsigned __int128 Wide;

  int64_t value_;
  uint64_t factor_ = 0;  // 0: the divisor is 1
  uint32_t shift_ = 0;
};
TANDEM_HOST_DEVICE inline int64_t quotient(int64_t a, const Divisor& b) {
  return b.divide(a);
}

// The same in 32 bits, for numbers and divisors below 2^31: a multiplication costs a GPU much less.
class SmallDivisor {
 public:
  SmallDivisor(int64_t divisor = 1) : value(static_cast<int>(divisor)) {
    while ((int64_t{1} << shift_) < divisor) ++shift_;
    const int64_t excess = (int64_t{1} << shift_) - divisor;
    factor_ = static_cast<uint32_t>((excess << 32) / divisor + 1);
  }
  [[nodiscard]] TANDEM_HOST_DEVICE int divide(int a) const {
    const auto number = static_cast<uint32_t>(a);
    const auto high = static_cast<uint32_t>((static_cast<uint64_t>(number) * factor_) >> 32);
    return static_cast<int>((high + number) >> shift_);
  }

  int value;

 private:
  uint32_t factor_ = 0, shift_ = 0;
};

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
