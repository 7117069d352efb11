// How the pixels of a resized picture are made of its pixels, along one axis: interpolation by a
// filter, which is stretched where the picture shrinks. Weights are those of Pillow, in the same
// order of operations, so that they have the same bits where the compiler fuses none of them. Data
// sets and exported models share them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tandem::resampling {

// linear: a triangle that reaches 1 pixel either way. cubic: Keys' convolution with a = -0.5
// (R. Keys, 1981), which reaches 2 pixels and has negative weights. Pillow's BILINEAR and BICUBIC.
enum class Filter { linear, cubic };

inline double reach_of(Filter filter) {
  return filter == Filter::cubic ? 2 : 1;
}

// The filter's value at a distance, in pixels of the unstretched filter.
inline double filter_at(Filter filter, double distance) {
  const double x = std::abs(distance);
  if (filter == Filter::linear) return std::max(0.0, 1 - x);
  if (x < 1) return (1.5 * x - 2.5) * x * x + 1;
  return x < 2 ? ((-0.5 * x + 2.5) * x - 4) * x + 2 : 0;
}

// The pixels that one pixel of the result is a weighted sum of.
struct Taps {
  int64_t first = 0;
  std::vector<double> weights;
};

// Of pixel `position` of `resized` ones made of `whole`. Uses the memory of `taps` again.
inline void find_taps(Filter filter, int64_t whole, int64_t resized, int64_t position, Taps& taps) {
  const double scale = static_cast<double>(whole) / static_cast<double>(resized);
  const double stretch = std::max(1.0, scale), reach = reach_of(filter) * stretch;
  const double centre = (static_cast<double>(position) + 0.5) * scale, squeeze = 1 / stretch;
  taps.first = std::max<int64_t>(0, static_cast<int64_t>(centre - reach + 0.5));
  const int64_t end = std::min(whole, static_cast<int64_t>(centre + reach + 0.5));
  taps.weights.resize(static_cast<size_t>(end - taps.first));
  double sum = 0;
  for (int64_t pixel = taps.first; pixel < end; ++pixel) {
    const double distance = static_cast<double>(pixel) - centre + 0.5;
    const double weight = filter_at(filter, distance * squeeze);
    taps.weights[static_cast<size_t>(pixel - taps.first)] = weight;
    sum += weight;
  }
  if (sum == 0) return;
  for (double& weight : taps.weights) weight /= sum;
}

// Whether Pillow 13 resizes a picture down before it does so along its rows. Older ones never do.
inline bool is_down_first(int64_t width, int64_t height, int64_t resized_width,
                          int64_t resized_height) {
  const int64_t fewer_rows = height - resized_height, fewer_columns = width - resized_width;
  return fewer_rows > 0 && fewer_rows > 2 * fewer_columns;
}

// Pillow's resized bytes are sums of bytes and whole numbers, which are weights of so many bits
// after the point. Halves are rounded away from zero.
constexpr int weight_bits = 22;
inline int32_t whole_weight(double weight) {
  const double bits = weight * (1 << weight_bits);
  return static_cast<int32_t>(weight < 0 ? bits - 0.5 : bits + 0.5);
}

}  // namespace tandem::resampling
