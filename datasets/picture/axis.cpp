#include "datasets/picture/axis.h"

#include <algorithm>
#include <cmath>

namespace tandem::picture {
namespace {

double step_of(const Span& span, int count) {
  return span.length / count;
}
// What stretches the filter.
double stretch_of(const Span& span, int count) {
  return std::max(1.0, step_of(span, count));
}
double reach_of(const Span& span, int count) {
  return resampling::reach_of(span.filter) * stretch_of(span, count);
}
// An open interval of length x holds at most ceil(x) whole numbers.
int taps_of(const Span& span, int count) {
  return std::min(static_cast<int>(std::ceil(2 * reach_of(span, count))), span.pixels);
}

// The first and last pixel of position i, clamped to the picture.
std::pair<int, int> pixels_of(const Span& span, int count, int i) {
  const double step = step_of(span, count), reach = reach_of(span, count);
  const double centre = span.begin + (i + 0.5) * step - 0.5;
  const auto low = static_cast<int>(std::floor(centre - reach + 1e-9)) + 1;
  const auto high = static_cast<int>(std::ceil(centre + reach - 1e-9)) - 1;
  return {std::clamp(low, 0, span.pixels - 1), std::clamp(high, 0, span.pixels - 1)};
}

}  // namespace

Span span_of(double begin, double length, int whole, int shrunk, Filter filter) {
  const double last = begin + length;
  const int pixels = (whole + shrunk - 1) / shrunk;
  const bool beyond = begin < -1e-6 || last > whole + 1e-6;
  return {begin / shrunk, length / shrunk, pixels, beyond, filter};
}

void make_axis(const Span& span, int count, int offset, bool mirrored, Axis& axis) {
  const double step = step_of(span, count), reach = reach_of(span, count);
  const double stretch = stretch_of(span, count);
  axis.count = count;
  axis.taps = taps_of(span, count);
  const auto size = static_cast<size_t>(count);
  axis.first.assign(size, 0);
  axis.inside.assign(size, 0);
  axis.weights.assign(size * static_cast<size_t>(axis.taps), 0);
  for (int i = 0; i < count; ++i) {
    const auto at = static_cast<size_t>(mirrored ? count - 1 - i : i);
    const double centre = span.begin + (i + 0.5) * step - 0.5;
    const auto [low, high] = pixels_of(span, count, i);
    // So that all taps are pixels of the picture, though the last may weigh nothing.
    const int first = std::clamp(low, 0, span.pixels - axis.taps);
    double sum = 0, all = 0;
    const auto weight = [&](int p) {
      return resampling::filter_at(span.filter, (p - centre) / stretch);
    };
    const auto begin = static_cast<int>(std::floor(centre - reach)) + 1;
    const auto end = static_cast<int>(std::ceil(centre + reach));
    for (int p = begin; p < end; ++p) all += weight(p);
    for (int p = low; p <= high; ++p) sum += weight(p);
    const bool edge_only = sum <= 0;
    const double divisor = span.beyond ? (all > 0 ? all : 1) : (edge_only ? 1 : sum);
    double inside = 0;
    for (int p = low; p <= high; ++p) {
      const double one = edge_only && !span.beyond ? (p == low ? 1 : 0) : weight(p) / divisor;
      axis.weights[static_cast<size_t>(p - first) * size + at] = static_cast<float>(one);
      inside += one;
    }
    axis.first[at] = first - offset;
    axis.inside[at] = span.beyond ? static_cast<float>(inside) : 1.0F;
  }
}

std::pair<int, int> touched(const Span& span, int count) {
  const int taps = taps_of(span, count);
  const int first = std::min(pixels_of(span, count, 0).first, span.pixels - taps);
  const int last = std::min(pixels_of(span, count, count - 1).first, span.pixels - taps) + taps;
  return {first, last};
}

}  // namespace tandem::picture
