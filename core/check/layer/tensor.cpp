#include "core/check/layer/tensor.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

namespace tandem::checker {

namespace {

int64_t memory_index(const Shape& s, int32_t layout, int64_t n, int64_t c, int64_t h, int64_t w) {
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
          body(size_t(plain), memory_index(s, layout, n, c, h, w));
        }
      }
    }
  }
}

// By arithmetic on the number and not on its bits: 8 significant bits. For finite values above the
// smallest normal number.
float rounded_to_bfloat16(float value) {
  if (!std::isfinite(value)) return value;
  int exponent = 0;
  const float mantissa = std::frexp(value, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(mantissa, 8)), exponent - 8);
}

// The same for float16: 11 significant bits, steps of 2^-24 near zero, infinite from 65520 on.
float rounded_to_float16(float value) {
  if (!std::isfinite(value)) return value;
  int exponent = 0;
  static_cast<void>(std::frexp(value, &exponent));
  const int step = std::max(exponent - 11, -24);
  const float rounded = std::ldexp(std::nearbyint(std::ldexp(value, -step)), step);
  return std::abs(rounded) > 65504 ? std::copysign(INFINITY, value) : rounded;
}

// The bits of a number that float16 can represent: sign, 5 bits of exponent, 10 of the fraction.
uint16_t float16_bits(float value) {
  const int sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value)) return 0x7e00;
  if (std::isinf(value)) return uint16_t(sign | 0x7c00);
  if (value == 0) return uint16_t(sign);
  int exponent = 0;
  const float fraction = std::frexp(std::abs(value), &exponent);
  const int magnitude = exponent < -13
                            ? int(std::ldexp(std::abs(value), 24))
                            : (exponent + 14) << 10 | (int(std::ldexp(fraction, 11)) & 1023);
  return uint16_t(sign | magnitude);
}
float float16_value(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const float magnitude = exponent == 31  ? (fraction == 0 ? INFINITY : NAN)
                          : exponent == 0 ? std::ldexp(float(fraction), -24)
                                          : std::ldexp(float(fraction + 1024), exponent - 25);
  return (bits & 0x8000) == 0 ? magnitude : -magnitude;
}

}  // namespace

float rounded_to(int32_t dtype, float value) {
  return dtype == TANDEM_FLOAT16    ? rounded_to_float16(value)
         : dtype == TANDEM_BFLOAT16 ? rounded_to_bfloat16(value)
                                    : value;
}
PlainTensor rounded_to(int32_t dtype, PlainTensor tensor) {
  for (float& value : tensor.values) value = rounded_to(dtype, value);
  return tensor;
}

void write_in_layout(const PlainTensor& tensor, int32_t layout, void* memory, int32_t dtype) {
  auto* wide = static_cast<float*>(memory);
  auto* narrow = static_cast<uint16_t*>(memory);
  if (layout == TANDEM_NCHW && dtype == TANDEM_FLOAT32) {
    std::copy(tensor.values.begin(), tensor.values.end(), wide);
    return;
  }
  for_each_element(tensor.shape, layout, [&](size_t plain, int64_t place) {
    const float value = rounded_to(dtype, tensor.values[plain]);
    if (dtype == TANDEM_BFLOAT16) {
      narrow[place] = uint16_t(std::bit_cast<uint32_t>(value) >> 16);
    } else if (dtype == TANDEM_FLOAT16) {
      narrow[place] = float16_bits(value);
    } else {
      wide[place] = value;
    }
  });
}

PlainTensor read_in_layout(const Shape& shape, int32_t layout, const void* memory, int32_t dtype) {
  const auto* wide = static_cast<const float*>(memory);
  const auto* narrow = static_cast<const uint16_t*>(memory);
  if (layout == TANDEM_NCHW && dtype == TANDEM_FLOAT32) {
    return {shape, {wide, wide + element_count(shape)}};
  }
  PlainTensor result{shape, std::vector<float>(size_t(element_count(shape)))};
  for_each_element(shape, layout, [&](size_t plain, int64_t place) {
    result.values[plain] = dtype == TANDEM_FLOAT16 ? float16_value(narrow[place])
                           : dtype == TANDEM_BFLOAT16
                               ? std::bit_cast<float>(uint32_t{narrow[place]} << 16)
                               : wide[place];
  });
  return result;
}

PlainTensor channels_of(const PlainTensor& tensor, int64_t begin, int64_t end) {
  const Shape& s = tensor.shape;
  PlainTensor result{{s.n, end - begin, s.h, s.w}, {}};
  for (int64_t n = 0; n < s.n; ++n) {
    const auto row = tensor.values.begin() + n * s.c * s.h * s.w;
    result.values.insert(result.values.end(), row + begin * s.h * s.w, row + end * s.h * s.w);
  }
  return result;
}

PlainTensor first_axis_of(const PlainTensor& tensor, int64_t begin, int64_t end) {
  const Shape& s = tensor.shape;
  const int64_t row = s.c * s.h * s.w;
  return {{end - begin, s.c, s.h, s.w},
          {tensor.values.begin() + begin * row, tensor.values.begin() + end * row}};
}

PlainTensor random_tensor(const Shape& shape, unsigned seed, float scale) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0, scale);
  PlainTensor result{shape, std::vector<float>(size_t(element_count(shape)))};
  for (float& value : result.values) value = normal(generator);
  return result;
}

}  // namespace tandem::checker
