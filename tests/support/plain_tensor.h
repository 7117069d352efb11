// A tensor as tests think of it: values in plain N,C,H,W order, and how they lie in each of the
// border's layouts, written down here once more, independently of the plugins.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "core/base/shape.h"
#include "plugins/abi.h"

namespace tandem::test {

struct PlainTensor {
  Shape shape{0, 0, 0, 0};
  std::vector<float> values;
};

// Where element (n, c, h, w) lies in memory.
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

inline void write_in_layout(const PlainTensor& tensor, int32_t layout, float* memory) {
  for_each_element(tensor.shape, layout, [&](int64_t plain, int64_t place) {
    memory[place] = tensor.values[static_cast<size_t>(plain)];
  });
}

inline PlainTensor read_in_layout(const Shape& shape, int32_t layout, const float* memory) {
  PlainTensor result{shape, std::vector<float>(static_cast<size_t>(element_count(shape)))};
  for_each_element(shape, layout, [&](int64_t plain, int64_t place) {
    result.values[static_cast<size_t>(plain)] = memory[place];
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

// Normally distributed, the same on every run.
inline PlainTensor random_tensor(const Shape& shape, unsigned seed, float scale = 1) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0, scale);
  PlainTensor result{shape, std::vector<float>(static_cast<size_t>(element_count(shape)))};
  for (float& value : result.values) value = normal(generator);
  return result;
}

// max |a - b| / max |b|; infinite where sizes differ or a value is not a number.
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

}  // namespace tandem::test
