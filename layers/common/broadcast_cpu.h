// The two loops over a tensor and the values that are broadcast over it (broadcast.h), on the cpu:
// one applies the values, the other sums the terms of each value. Sums do not depend on the number
// of threads: they are added in float over at most 64 pixels, and those sums in double, in the
// order of memory.
#pragma once

#include <algorithm>
#include <cstdint>

#include "layers/common/broadcast.h"
#include "plugins/cpu/bfloat16.h"
#include "plugins/cpu/team.h"
#include "plugins/cpu/vectorized.h"

namespace tandem::layers {

namespace detail {

using cpu::load;
using cpu::store;

// `lanes` is the width if it is known at compile time, else 0.
template <int64_t lanes, class T, class V, class Function>
void apply_to_pixels(const Broadcast& s, const T* x, const T* g, const V* a, const V* b, T* y,
                     const Function& function) {
  const int64_t width = lanes > 0 ? lanes : s.width;
  for (int64_t p = 0; p < s.pixels * width; p += width) {
#pragma omp simd
    for (int64_t k = 0; k < width; ++k) {
      store(function(load(x[p + k]), load(g[p + k]), load(a[k]), load(b[k])), y[p + k]);
    }
  }
}

template <class T, class V, class Function>
void apply_to_tile(const Broadcast& s, const T* x, const T* g, const V* a, const V* b, T* y,
                   const Function& function) {
  if (s.width == 1) {
    const float one_a = load(*a), one_b = load(*b);
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

// sums[k] += the terms of `pixels` pixels that lie `stride` apart.
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
  // Whole pieces of rows, which the processor fetches ahead.
  for (; k + 64 <= width; k += 64) add_lanes<64>(pixels, width, x + k, g + k, sums + k, term);
  for (; k + 16 <= width; k += 16) add_lanes<16>(pixels, width, x + k, g + k, sums + k, term);
  for (; k + 8 <= width; k += 8) add_lanes<8>(pixels, width, x + k, g + k, sums + k, term);
  for (; k < width; ++k) add_lanes<1>(pixels, width, x + k, g + k, sums + k, term);
}

constexpr int64_t pixels_at_once = 64;

template <class T, class Term>
void add_tile(const Broadcast& s, const T* x, const T* g, double* sums, const Term& term) {
  if (s.width > 1) {
    for (int64_t p = 0; p < s.pixels; p += pixels_at_once) {
      const int64_t at = p * s.width;
      add_pixels(std::min(pixels_at_once, s.pixels - p), s.width, x + at, g + at, sums, term);
    }
    return;
  }
  // One value for the whole tile: sixteen sums side by side, then one.
  constexpr int64_t lanes = 16;
  double lane_sums[lanes] = {};
  const int64_t whole = s.pixels / lanes * lanes;
  for (int64_t i = 0; i < whole; i += lanes * pixels_at_once) {
    const int64_t groups = std::min(pixels_at_once, (whole - i) / lanes);
    add_lanes<lanes>(groups, lanes, x + i, g + i, lane_sums, term);
  }
  for (int64_t i = whole; i < s.pixels; ++i) lane_sums[i - whole] += term(load(x[i]), load(g[i]));
  for (const double lane : lane_sums) *sums += lane;
}

// What is summed, and where the sums go.
template <class V, class Term>
struct SumOf {
  const Term& term;
  V* sums;
};

// Sum number `index` of groups * period: over one group of the batch, for the values of one tile of
// the period. The sums of each term are `distance` doubles after those of the term before. A tile
// is read from memory for the first term and from the cache for the others.
template <class T, class... Terms>
void add_group(const Broadcast& s, int64_t index, int64_t groups, const T* x, const T* g,
               double* sums, int64_t distance, const Terms&... terms) {
  for (size_t i = 0; i < sizeof...(Terms); ++i) {
    std::fill_n(sums + static_cast<int64_t>(i) * distance, s.width, 0.0);
  }
  const int64_t group = index / s.period, end = (group + 1) * s.repeats() / groups;
  for (int64_t r = group * s.repeats() / groups; r < end; ++r) {
    const int64_t at = (r * s.period + index % s.period) * s.pixels * s.width;
    double* to = sums;
    ((add_tile(s, x + at, g + at, to, terms.term), to += distance), ...);
  }
}

// The sum of all groups, for each value.
template <class V>
void store_sums(int32_t threads, int64_t values, int64_t groups, const double* group_sums, V* sums,
                bool accumulate) {
  cpu::for_ranges(threads, values, [=](int64_t begin, int64_t end) {
    for (int64_t v = begin; v < end; ++v) {
      double sum = 0;
      for (int64_t group = 0; group < groups; ++group) sum += group_sums[group * values + v];
      const float before = accumulate ? cpu::load(sums[v]) : 0.0F;
      cpu::store(before + static_cast<float>(sum), sums[v]);
    }
  });
}

}  // namespace detail

// y = function(x, g, a, b), where x, g and y are tensors and a and b the values of their elements.
// T and V are float or bfloat16. An argument that the function does not use may be any readable
// memory of its size; y may be x or g.
template <class T, class V, class Function>
void apply_values(int32_t threads, const Broadcast& s, const T* x, const T* g, const V* a,
                  const V* b, T* y, const Function& function) {
  const auto range = [=, &s](int64_t begin, int64_t end) {
    for (int64_t tile = begin; tile < end; ++tile) {
      const int64_t at = tile * s.pixels * s.width, value = tile % s.period * s.width;
      detail::apply_to_tile(s, x + at, g + at, a + value, b + value, y + at, function);
    }
  };
  cpu::for_items(threads, s.tiles, s.pixels * s.width, cpu::vectorized(range));
}

// The batch is summed in this many groups at once if there are too few values to keep all threads
// busy.
inline int64_t sum_groups(const Broadcast& s) {
  return s.period >= 16 ? 1 : std::min<int64_t>(16, s.repeats());
}
inline int64_t sum_scratch_bytes(const Broadcast& s, int64_t terms = 1) {
  return terms * sum_groups(s) * s.values() * static_cast<int64_t>(sizeof(double));
}

// For every value and term: sums = the sum of term(x, g) over its elements, or sums += it.
// `scratch` has sum_scratch_bytes for all terms.
template <class T, class... Terms>
void sum_terms(int32_t threads, const Broadcast& s, const T* x, const T* g, double* scratch,
               bool accumulate, const Terms&... terms) {
  const int64_t groups = sum_groups(s), values = s.values();
  const int64_t group_sums = groups * s.period, distance = groups * values;
  const auto range = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      detail::add_group(s, i, groups, x, g, scratch + i * s.width, distance, terms...);
    }
  };
  cpu::for_items(threads, group_sums, s.elements() / group_sums, cpu::vectorized(range));
  const double* sums = scratch;
  ((detail::store_sums(threads, values, groups, sums, terms.sums, accumulate), sums += distance),
   ...);
}

template <class T, class V, class Term>
void sum_values(int32_t threads, const Broadcast& s, const T* x, const T* g, const Term& term,
                double* scratch, V* sums, bool accumulate) {
  sum_terms(threads, s, x, g, scratch, accumulate, detail::SumOf<V, Term>{term, sums});
}
// Of two terms, with the same bits as one after the other.
template <class T, class V, class First, class Second>
void sum_values(int32_t threads, const Broadcast& s, const T* x, const T* g, const First& first,
                V* first_sums, const Second& second, V* second_sums, double* scratch,
                bool accumulate) {
  sum_terms(threads, s, x, g, scratch, accumulate, detail::SumOf<V, First>{first, first_sums},
            detail::SumOf<V, Second>{second, second_sums});
}

}  // namespace tandem::layers
