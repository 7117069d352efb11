// The two loops over a tensor and values spread over it: applying the values, and summing up what
// belongs to each. Sums do not depend on the number of threads: they are added in float over at
// most 64 pixels, and those sums in double, in the order of memory.
#pragma once

#include <algorithm>
#include <cstdint>

#include "layers/spread.h"
#include "plugins/cpu/bfloat16.h"
#include "plugins/cpu/team.h"

namespace tandem::layers {

namespace detail {

using cpu::load;
using cpu::store;

// `lanes` is the width, where it is known.
template <int64_t lanes, class T, class Function>
void apply_to_pixels(const Spread& s, const T* x, const T* g, const float* a, const float* b, T* y,
                     const Function& function) {
  const int64_t width = lanes > 0 ? lanes : s.width;
  for (int64_t p = 0; p < s.pixels * width; p += width) {
#pragma omp simd
    for (int64_t k = 0; k < width; ++k) {
      store(function(load(x[p + k]), load(g[p + k]), a[k], b[k]), y[p + k]);
    }
  }
}

template <class T, class Function>
void apply_to_tile(const Spread& s, const T* x, const T* g, const float* a, const float* b, T* y,
                   const Function& function) {
  if (s.width == 1) {
    const float one_a = *a, one_b = *b;
#pragma omp simd
    for (int64_t i = 0; i < s.pixels; ++i) {
      store(function(load(x[i]), load(g[i]), one_a, one_b), y[i]);
    }
  } else if (s.width == 16) {
    apply_to_pixels<16>(s, x, g, a, b, y, function);
  } else if (s.width == 8) {
    apply_to_pixels<8>(s, x, g, a, b, y, function);
  } else {
    apply_to_pixels<0>(s, x, g, a, b, y, function);
  }
}

// sums[k] += term over `pixels` pixels that lie `stride` apart.
template <int64_t lanes, class T, class Term>
void add_lanes(int64_t pixels, int64_t stride, const T* x, const T* g, double* sums,
               const Term& term) {
  float partial[lanes] = {};
  for (int64_t p = 0; p < pixels * stride; p += stride) {
#pragma omp simd
    for (int64_t k = 0; k < lanes; ++k) partial[k] += term(load(x[p + k]), load(g[p + k]));
  }
  for (int64_t k = 0; k < lanes; ++k) sums[k] += partial[k];
}

template <class T, class Term>
void add_pixels(int64_t pixels, int64_t width, const T* x, const T* g, double* sums,
                const Term& term) {
  int64_t k = 0;
  for (; k + 16 <= width; k += 16) add_lanes<16>(pixels, width, x + k, g + k, sums + k, term);
  for (; k + 8 <= width; k += 8) add_lanes<8>(pixels, width, x + k, g + k, sums + k, term);
  for (; k < width; ++k) add_lanes<1>(pixels, width, x + k, g + k, sums + k, term);
}

constexpr int64_t pixels_at_once = 64;

template <class T, class Term>
void add_tile(const Spread& s, const T* x, const T* g, double* sums, const Term& term) {
  if (s.width > 1) {
    for (int64_t p = 0; p < s.pixels; p += pixels_at_once) {
      const int64_t at = p * s.width;
      add_pixels(std::min(pixels_at_once, s.pixels - p), s.width, x + at, g + at, sums, term);
    }
    return;
  }
  // One value for the whole tile: sixteen sums side by side, then one.
  constexpr int64_t lanes = 16;
  double parts[lanes] = {};
  const int64_t whole = s.pixels / lanes * lanes;
  for (int64_t i = 0; i < whole; i += lanes * pixels_at_once) {
    const int64_t groups = std::min(pixels_at_once, (whole - i) / lanes);
    add_lanes<lanes>(groups, lanes, x + i, g + i, parts, term);
  }
  for (int64_t i = whole; i < s.pixels; ++i) parts[i - whole] += term(load(x[i]), load(g[i]));
  for (const double part : parts) *sums += part;
}

// Part `part` of groups * period: one group of the batch for the values of one place in the period.
template <class T, class Term>
void add_part(const Spread& s, int64_t part, int64_t groups, const T* x, const T* g, double* sums,
              const Term& term) {
  std::fill_n(sums, s.width, 0.0);
  const int64_t group = part / s.period, end = (group + 1) * s.repeats() / groups;
  for (int64_t r = group * s.repeats() / groups; r < end; ++r) {
    const int64_t at = (r * s.period + part % s.period) * s.pixels * s.width;
    add_tile(s, x + at, g + at, sums, term);
  }
}

}  // namespace detail

// y = function(x, g, a, b), where x and g are tensors, of float32 or bfloat16 as y, and a and b the
// values of their elements.
// What a function does not use may be any readable memory of its size; y may be x or g.
template <class T, class Function>
void apply_values(int32_t threads, const Spread& s, const T* x, const T* g, const float* a,
                  const float* b, T* y, const Function& function) {
  cpu::for_items(threads, s.tiles, s.pixels * s.width, [=, &s](int64_t begin, int64_t end) {
    for (int64_t tile = begin; tile < end; ++tile) {
      const int64_t at = tile * s.pixels * s.width, value = tile % s.period * s.width;
      detail::apply_to_tile(s, x + at, g + at, a + value, b + value, y + at, function);
    }
  });
}

// The batch is summed in this many groups, side by side, where the values alone are too few to keep
// threads busy.
inline int64_t sum_groups(const Spread& s) {
  return s.period >= 16 ? 1 : std::min<int64_t>(16, s.repeats());
}
inline int64_t sum_scratch_bytes(const Spread& s) {
  return sum_groups(s) * s.values() * static_cast<int64_t>(sizeof(double));
}

// For every value: sums = the sum of term(x, g) over its elements, or plus it. `scratch` has
// sum_scratch_bytes.
template <class T, class Term>
void sum_values(int32_t threads, const Spread& s, const T* x, const T* g, const Term& term,
                double* scratch, float* sums, bool accumulate) {
  const int64_t groups = sum_groups(s);
  const int64_t parts = groups * s.period;
  cpu::for_items(threads, parts, s.elements() / parts, [=, &s](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      detail::add_part(s, part, groups, x, g, scratch + part * s.width, term);
    }
  });
  const int64_t values = s.values();
  cpu::for_ranges(threads, values, [=](int64_t begin, int64_t end) {
    for (int64_t v = begin; v < end; ++v) {
      double sum = 0;
      for (int64_t group = 0; group < groups; ++group) sum += scratch[group * values + v];
      sums[v] = (accumulate ? sums[v] : 0.0F) + static_cast<float>(sum);
    }
  });
}

}  // namespace tandem::layers
