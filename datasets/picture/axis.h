// One axis of a resampling: the pixels and weights of each position of the result. The filter is
// that of an interpolation, stretched to the pixels of one position where the picture shrinks.
#pragma once

#include <utility>
#include <vector>

#include "plugins/resampling.h"

namespace tandem::picture {

using resampling::Filter;

// A part of a picture along one axis, in pixels of the picture as it was decoded.
struct Span {
  double begin = 0, length = 0;
  int pixels = 0;       // of the picture, along this axis
  bool beyond = false;  // the part reaches beyond the picture
  Filter filter = Filter::linear;
};
// `begin`, `length` and `whole` in pixels of the full-size picture, which was decoded `shrunk`
// times smaller.
[[nodiscard]] Span span_of(double begin, double length, int whole, int shrunk, Filter filter);

// Position i is the sum of `taps` neighboring pixels from first[i] on, tap t with the weight
// weights[t * count + i].
struct Axis {
  int count = 0, taps = 0;
  std::vector<int> first;
  std::vector<float> weights;
  std::vector<float> inside;  // sum of a position's weights; not 1 beyond the picture's edge
};
// `offset`: the pixel that first[i] counts from. Grows the axis's memory only where it must.
void make_axis(const Span& span, int count, int offset, bool mirrored, Axis& axis);

// The pixels, first and first beyond, that the taps of any of `count` positions touch.
[[nodiscard]] std::pair<int, int> touched(const Span& span, int count);

}  // namespace tandem::picture
