// Exponential functions in float that compilers vectorize without -ffast-math: no branches, no
// tables, no calls. Relative errors are a few 1e-7 over the whole range; the results for infinities
// and NaN are those of the C library. Polynomials are minimax fits.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "plugins/random.h"

namespace tandem::layers {

// `yes` if the condition holds, else `no`, by arithmetic: g++ makes a branch of a ?: with
// constants, which cannot be vectorized.
TANDEM_HOST_DEVICE inline float select(bool condition, float yes, float no) {
  const int32_t mask = -static_cast<int32_t>(condition);
  return std::bit_cast<float>((std::bit_cast<int32_t>(yes) & mask) |
                              (std::bit_cast<int32_t>(no) & ~mask));
}

// 2^n for n from -126 to 127.
TANDEM_HOST_DEVICE inline float power_of_two(int32_t n) {
  return std::bit_cast<float>((n + 127) << 23);
}

// exp(x) = 2^n (1 + tail), with tail = exp(x - n ln 2) - 1 and |x - n ln 2| <= ln 2 / 2. 2^n may be
// out of float's range, so it is stored as low * high.
struct SplitExponential {
  TANDEM_HOST_DEVICE explicit SplitExponential(float x) {
    const float bounded = select(x < -105.0F, -105.0F, select(x > 90.0F, 90.0F, x));
    constexpr float round = 12582912.0F;  // 1.5 * 2^23: adding it rounds to a whole number
    const float rounded = bounded * 1.44269504F + round;
    const float whole = rounded - round;
    const float r = (bounded - whole * 0.693359375F) + whole * 2.12194440e-4F;
    const float q =
        0.5F + r * (0.166665182F + r * (0.041666206F + r * (0.00836888794F + r * 0.00139504881F)));
    tail = r + r * r * q;
    // Its last bits hold the whole number. NaN, which no integer holds, gives any n; tail is NaN.
    const int32_t n = std::bit_cast<int32_t>(rounded) - std::bit_cast<int32_t>(round);
    low = power_of_two(n >> 1);
    high = power_of_two(n - (n >> 1));
  }
  float tail, low, high;
};

TANDEM_HOST_DEVICE inline float exponential(float x) {
  const SplitExponential e(x);
  return (1 + e.tail) * e.low * e.high;
}

// exp(x) - 1, accurate near zero; x <= 60.
TANDEM_HOST_DEVICE inline float exponential_minus_one(float x) {
  const SplitExponential e(x);
  const float power = e.low * e.high;
  return power * e.tail + (power - 1);
}

TANDEM_HOST_DEVICE inline float logistic(float x) {
  return 1 / (1 + exponential(-x));
}

TANDEM_HOST_DEVICE inline float hyperbolic_tangent(float x) {
  const float size = std::fabs(x);
  const float square = x * x;
  const float p =
      -0.333332837F +
      square * (0.133314908F +
                square * (-0.0537434965F + square * (0.020650588F - square * 0.00571704516F)));
  const float small = size + size * square * p;
  const float large = 1 - 2 / (exponential(2 * size) + 1);
  return std::copysign(select(size < 0.625F, small, large), x);
}

// Natural logarithm; -infinity for 0, NaN for negative numbers.
TANDEM_HOST_DEVICE inline float logarithm(float x) {
  const bool tiny = x < 1.17549435e-38F;
  const float scaled_up = x * 8388608.0F;
  const float normal = select(tiny, scaled_up, x);
  // x = 2^n (1 + f) with 1 + f from sqrt(1/2) to sqrt(2). Unsigned, as -0 would overflow.
  const uint32_t offset = std::bit_cast<uint32_t>(normal) - 0x3f3504f3U;
  const int32_t n = (static_cast<int32_t>(offset) >> 23) - 23 * static_cast<int32_t>(tiny);
  const float f = std::bit_cast<float>((offset & 0x007fffffU) + 0x3f3504f3U) - 1;
  const float upper =
      0.200030163F +
      f * (-0.166111499F +
           f * (0.141634688F + f * (-0.132087946F + f * (0.130048335F - f * 0.0782338157F))));
  const float p = -0.499999881F + f * (0.333333075F + f * (-0.250015229F + f * upper));
  const auto exponent = static_cast<float>(n);
  const float y = exponent * 0.693359375F + (f + (f * f * p - exponent * 2.12194440e-4F));
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const float bounded = select(x < infinity, y, x);  // infinity and NaN stay as they are
  const float with_zero = select(x == 0, -infinity, bounded);
  return select(x < 0, std::numeric_limits<float>::quiet_NaN(), with_zero);
}

// log(1 + x) for x >= 0, accurate near zero: it corrects the rounding of 1 + x.
TANDEM_HOST_DEVICE inline float logarithm_of_one_plus(float x) {
  const float sum = 1 + x;
  return logarithm(sum) + (x - (sum - 1)) / sum;
}

// The standard normal distribution: its density times sqrt(2 pi), and the probability below x.
struct Normal {
  TANDEM_HOST_DEVICE explicit Normal(float x) : bell(exponential(-0.5F * x * x)) {
    // The probability beyond |x| is bell * p(t), a polynomial in t = 1 / (1 + |x| / sqrt(8)).
    const float size = std::fabs(x);
    const float t = 1 / (1 + size * 0.353553391F);
    const float upper =
        0.101210415F +
        t * (-0.0131480191F +
             t * (0.138933092F + t * (-0.243595049F + t * (0.142313868F - t * 0.0295442771F))));
    const float p =
        -1.34276107e-07F + t * (0.141045526F + t * (0.141171336F + t * (0.121613227F + t * upper)));
    const float beyond = bell * p;
    below = select(x < 0, beyond, 1 - beyond);
  }
  float bell, below;
};

}  // namespace tandem::layers
