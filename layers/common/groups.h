// A tensor as groups of elements that are summed or normalized together, in any layout: a whole
// row, a channel, or a line. Groups whose elements are interleaved (the channels of a block) are
// processed together, up to `lanes` at once, so that loops are vectorized. Sums are in a fixed
// order: short sums in float, the sums of those in double.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "plugins/cpu/layout.h"
#include "plugins/cpu/team.h"

namespace tandem::layers {

inline constexpr int64_t lanes = 16;
using LaneSums = std::array<double, lanes>;

// outer x reduced x inner elements in memory order; each (outer, inner) is a group.
struct Groups {
  int64_t outer, reduced, inner;
  [[nodiscard]] int64_t count() const { return outer * inner; }
};

// The groups of a reduction over the axes from `axis` (1 to 3) on.
inline Groups groups_from(const tandem_tensor& tensor, size_t axis) {
  const tandem_shape& s = tensor.shape;
  if (axis == 1) return {s.n, s.c * s.h * s.w, 1};
  const int64_t block = cpu::block_of(tensor.layout, s.c);
  const int64_t planes = s.n * (s.c / block);
  return axis == 2 ? Groups{planes, s.h * s.w, block} : Groups{planes * s.h, s.w, block};
}

// Up to `lanes` neighboring groups.
struct GroupRange {
  // The first group, and how many there are.
  int64_t first;
  int64_t width;
  // The first element of the first group, and the distance to its next element.
  int64_t begin;
  int64_t stride;
  int64_t count;  // elements in each group
};

// body(range) for all groups, divided among the threads.
template <class Body>
void for_groups(int32_t threads, const Groups& groups, const Body& body) {
  const int64_t parts = (groups.inner + lanes - 1) / lanes;
  const int64_t floats = groups.reduced * std::min(groups.inner, lanes);
  cpu::for_items(threads, groups.outer * parts, floats, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t outer = item / parts, first = item % parts * lanes;
      body(GroupRange{outer * groups.inner + first, std::min(lanes, groups.inner - first),
                      outer * groups.reduced * groups.inner + first, groups.inner, groups.reduced});
    }
  });
}

namespace detail {

// totals[l] += value(begin + r * stride + l) for `rows` rows of `width` lanes.
template <class Value>
void add_rows(int64_t begin, int64_t rows, int64_t stride, int64_t width, const Value& value,
              LaneSums& totals) {
  constexpr int64_t in_float = 64;
  for (int64_t first = 0; first < rows; first += in_float) {
    const int64_t last = std::min(rows, first + in_float);
    std::array<float, lanes> part{};
    for (int64_t row = first; row < last; ++row) {
      const int64_t at = begin + row * stride;
      if (width == lanes) {
        for (int64_t l = 0; l < lanes; ++l) part[static_cast<size_t>(l)] += value(at + l);
      } else {
        for (int64_t l = 0; l < width; ++l) part[static_cast<size_t>(l)] += value(at + l);
      }
    }
    for (size_t l = 0; l < part.size(); ++l) totals[l] += static_cast<double>(part[l]);
  }
}

}  // namespace detail

// The sum of value(i) over the `count` elements from `begin` on.
template <class Value>
double sum_of(int64_t begin, int64_t count, const Value& value) {
  LaneSums sums{};
  const int64_t rows = count / lanes;
  detail::add_rows(begin, rows, lanes, lanes, value, sums);
  detail::add_rows(begin + rows * lanes, 1, lanes, count % lanes, value, sums);
  double sum = 0;
  for (const double lane : sums) sum += lane;
  return sum;
}

// The sum of value(i) over the elements i of each group of the range.
template <class Value>
LaneSums group_sums(const GroupRange& range, const Value& value) {
  LaneSums sums{};
  if (range.stride == 1) {
    sums[0] = sum_of(range.begin, range.count, value);
  } else {
    detail::add_rows(range.begin, range.count, range.stride, range.width, value, sums);
  }
  return sums;
}

// body(i, lane) for the elements i of each group of the range.
template <class Body>
void for_elements(const GroupRange& range, const Body& body) {
  if (range.stride == 1) {
    for (int64_t i = range.begin; i < range.begin + range.count; ++i) body(i, size_t{0});
    return;
  }
  for (int64_t row = 0; row < range.count; ++row) {
    const int64_t at = range.begin + row * range.stride;
    if (range.width == lanes) {
      for (int64_t l = 0; l < lanes; ++l) body(at + l, static_cast<size_t>(l));
    } else {
      for (int64_t l = 0; l < range.width; ++l) body(at + l, static_cast<size_t>(l));
    }
  }
}

}  // namespace tandem::layers
