// A tensor of a check or a test: values in plain N,C,H,W order, and their indices in each of the
// ABI's layouts, written independently of the plugins.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "core/base/numbers/shape.h"
#include "plugins/abi.h"

namespace tandem::checker {

struct PlainTensor {
  Shape shape{0, 0, 0, 0};
  std::vector<float> values;
};

// The memory index of element (n, c, h, w).
inline int64_t memory_index(const Shape& s, int32_t layout, int64_t n, int64_t c, int64_t h,
                            int64_t w) {
  if (layout == TANDEM_NHWC) return ((n * s.h + h) * s.w + w) * s.c + c;
  if (layout == TANDEM_NCHW) return ((n * s.c + c) * s.h + h) * s.w + w;
  const int64_t block = layout == TANDEM_NCHW8C ? 8 : 16;
  return (((n * (s.c / block) + c / block) * s.h + h) * s.w + w) * block + c % block;
}

// Calls body(plain index, memory index) for every element.
template <class Body>
void for_each_element(const Shape& s, int32_t layout, const Body& body) {
  int64_t plain = 0;
  for (int64_t n = 0; n < s.n; ++n) {
    for (int64_t c = 0; c < s.c; ++c) {
      for (int64_t h = 0; h < s.h; ++h) {
        for (int64_t w = 0; w < s.w; ++w, ++plain) {
          body(plain, memory_index(s, layout, n, c, h, w));
        }
      }
    }
  }
}

// The nearest bfloat16, ties to even, by arithmetic on the number and not on its bits: 8
// significant bits. For finite values above the smallest normal number.
inline float rounded_to_bfloat16(float value) {
  if (!std::isfinite(value)) return value;
  int exponent = 0;
  const float mantissa = std::frexp(value, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(mantissa, 8)), exponent - 8);
}
inline PlainTensor rounded_to_bfloat16(PlainTensor tensor) {
  for (float& value : tensor.values) value = rounded_to_bfloat16(value);
  return tensor;
}

// The same for float16: 11 significant bits, steps of 2^-24 near zero, infinite from 65520 on.
inline float rounded_to_float16(float value) {
  if (!std::isfinite(value)) return value;
  int exponent = 0;
  static_cast<void>(std::frexp(value, &exponent));
  const int step = std::max(exponent - 11, -24);
  const float rounded = std::ldexp(std::nearbyint(std::ldexp(value, -step)), step);
  return std::abs(rounded) > 65504 ? std::copysign(INFINITY, value) : rounded;
}
inline float rounded_to(int32_t dtype, float value) {
  return dtype == TANDEM_FLOAT16    ? rounded_to_float16(value)
         : dtype == TANDEM_BFLOAT16 ? rounded_to_bfloat16(value)
                                    : value;
}
inline PlainTensor rounded_to(int32_t dtype, PlainTensor tensor) {
  for (float& value : tensor.values) value = rounded_to(dtype, value);
  return tensor;
}

// The bits of a number that float16 can represent: sign, 5 bits of exponent, 10 of the fraction.
inline uint16_t float16_bits(float value) {
  const int sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value)) return 0x7e00;
  if (std::isinf(value)) return static_cast<uint16_t>(sign | 0x7c00);
  if (value == 0) return static_cast<uint16_t>(sign);
  int exponent = 0;
  const float fraction = std::frexp(std::abs(value), &exponent);
  const int magnitude =
      exponent < -13 ? static_cast<int>(std::ldexp(std::abs(value), 24))
                     : (exponent + 14) << 10 | (static_cast<int>(std::ldexp(fraction, 11)) & 1023);
  return static_cast<uint16_t>(sign | magnitude);
}
inline float float16_value(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const float magnitude = exponent == 31 ? (fraction == 0 ? INFINITY : NAN)
                          : exponent == 0
                              ? std::ldexp(static_cast<float>(fraction), -24)
                              : std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
  return (bits & 0x8000) == 0 ? magnitude : -magnitude;
}

// An element of a tensor in memory.
inline void write_element(float value, int32_t dtype, int64_t place, void* memory) {
  if (dtype == TANDEM_BFLOAT16) {
    static_cast<uint16_t*>(memory)[place] =
        static_cast<uint16_t>(std::bit_cast<uint32_t>(rounded_to_bfloat16(value)) >> 16);
  } else if (dtype == TANDEM_FLOAT16) {
    static_cast<uint16_t*>(memory)[place] = float16_bits(rounded_to_float16(value));
  } else {
    static_cast<float*>(memory)[place] = value;
  }
}
inline float read_element(int32_t dtype, int64_t place, const void* memory) {
  if (dtype == TANDEM_FLOAT16) {
    return float16_value(static_cast<const uint16_t*>(memory)[place]);
  }
  if (dtype != TANDEM_BFLOAT16) return static_cast<const float*>(memory)[place];
  return std::bit_cast<float>(uint32_t{static_cast<const uint16_t*>(memory)[place]} << 16);
}

inline void write_in_layout(const PlainTensor& tensor, int32_t layout, void* memory,
                            int32_t dtype = TANDEM_FLOAT32) {
  for_each_element(tensor.shape, layout, [&](int64_t plain, int64_t place) {
    write_element(tensor.values[static_cast<size_t>(plain)], dtype, place, memory);
  });
}

inline PlainTensor read_in_layout(const Shape& shape, int32_t layout, const void* memory,
                                  int32_t dtype = TANDEM_FLOAT32) {
  PlainTensor result{shape, std::vector<float>(static_cast<size_t>(element_count(shape)))};
  for_each_element(shape, layout, [&](int64_t plain, int64_t place) {
    result.values[static_cast<size_t>(plain)] = read_element(dtype, place, memory);
  });
  return result;
}

// Channels [begin, end) of every row; rows [begin, end).
inline PlainTensor channels_of(const PlainTensor& tensor, int64_t begin, int64_t end) {
  const Shape& s = tensor.shape;
  PlainTensor result{{s.n, end - begin, s.h, s.w}, {}};
  for (int64_t n = 0; n < s.n; ++n) {
    const auto row = tensor.values.begin() + n * s.c * s.h * s.w;
    result.values.insert(result.values.end(), row + begin * s.h * s.w, row + end * s.h * s.w);
  }
  return result;
}
inline PlainTensor first_axis_of(const PlainTensor& tensor, int64_t begin, int64_t end) {
  const Shape& s = tensor.shape;
  const int64_t row = s.c * s.h * s.w;
  return {{end - begin, s.c, s.h, s.w},
          {tensor.values.begin() + begin * row, tensor.values.begin() + end * row}};
}

// Normally distributed, the same in every run.
inline PlainTensor random_tensor(const Shape& shape, unsigned seed, float scale = 1) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0, scale);
  PlainTensor result{shape, std::vector<float>(static_cast<size_t>(element_count(shape)))};
  for (float& value : result.values) value = normal(generator);
  return result;
}

// max |a - b| / max |b|; infinite if sizes differ or a value is NaN.
template <class Expected>
double relative_difference(const std::vector<float>& a, const std::vector<Expected>& b) {
  if (a.size() != b.size()) return INFINITY;
  double difference = 0, largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double here = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (!std::isfinite(here)) return INFINITY;
    difference = std::max(difference, here);
    largest = std::max(largest, std::abs(static_cast<double>(b[i])));
  }
  return difference == 0 ? 0 : difference / largest;
}

}  // namespace tandem::checker
