// The two loops over a tensor and values spread over it, on a gpu: applying the values, and summing
// up what belongs to each.
#pragma once

#include <cstdint>

#include "layers/covered_axes.h"
#include "layers/rectified_cuda.h"
#include "plugins/cuda/elements.h"
#include "plugins/cuda/sums.h"

namespace tandem::layers {

// A Spread as device code reads it.
struct SpreadPlaces {
  SpreadPlaces() = default;
  explicit SpreadPlaces(const Spread& s) : pixels(s.pixels), width(s.width), period(s.period) {}

  // The value of the element that lies at `index`.
  [[nodiscard]] TANDEM_HOST_DEVICE int64_t value_of(int64_t index) const {
    const int64_t pixel = cuda::quotient(index, width);
    const int64_t tile = cuda::quotient(pixel, pixels);
    const int64_t place = tile - cuda::quotient(tile, period) * period;
    return place * width + (index - pixel * width);
  }
  // Where element number `k` of value `value` lies.
  [[nodiscard]] TANDEM_HOST_DEVICE int64_t index_of(int64_t value, int64_t k) const {
    const int64_t place = cuda::quotient(value, width), repeat = cuda::quotient(k, pixels);
    const int64_t pixel = (repeat * period + place) * pixels + (k - repeat * pixels);
    return pixel * width + (value - place * width);
  }

  cuda::Divisor pixels, width, period;
};

namespace detail {

template <class Function, class T, class V>
struct AppliedValues {
  TANDEM_HOST_DEVICE void operator()(int64_t i) const {
    const int64_t value = places.value_of(i);
    store_rectified(
        function(cuda::load(x[i]), cuda::load(g[i]), cuda::load(a[value]), cuda::load(b[value])),
        y[i], rectifies);
  }
  SpreadPlaces places;
  Function function;
  const T *x, *g;
  const V *a, *b;
  T* y;
  bool rectifies;
};

template <class Function, class T>
struct SpreadTerm {
  TANDEM_HOST_DEVICE double operator()(int64_t value, int64_t k) const {
    const int64_t i = places.index_of(value, k);
    return static_cast<double>(function(cuda::load(x[i]), cuda::load(g[i])));
  }
  SpreadPlaces places;
  Function function;
  const T *x, *g;
};

template <class V>
struct StoreSum {
  TANDEM_HOST_DEVICE void operator()(int64_t value, double sum) const {
    const float before = accumulate ? cuda::load(sums[value]) : 0.0F;
    cuda::store(before + static_cast<float>(sum), sums[value]);
  }
  V* sums;
  bool accumulate;
};

}  // namespace detail

// y = function(x, g, a, b), where x and g are tensors and a and b the values of their elements.
// What a function does not use may be any readable memory of its size; y may be x or g.
// `rectifies`: a ReLU is done along.
template <class T, class V, class Function>
void apply_values(const sdk::Call& call, const Spread& s, const T* x, const T* g, const V* a,
                  const V* b, T* y, const Function& function, bool rectifies = false) {
  cuda::for_each(
      call, s.elements(),
      detail::AppliedValues<Function, T, V>{SpreadPlaces(s), function, x, g, a, b, y, rectifies});
}

// Of a layer with the parameters of covered_axes.h.
inline sdk::LayoutOptions cuda_layouts_for(const sdk::Binding& binding) {
  if (axes_of(binding).fits_any_layout()) return cuda::plain_layouts();
  return {{TANDEM_NCHW, TANDEM_NCHW, 0}};
}

template <class Value = double>
cuda::GroupSums<Value> sums_over(const Spread& s) {
  return {s.values(), s.repeats() * s.pixels, s.width > 1};
}

// For every value: sums = the sum of function(x, g) over its elements, or plus it. `scratch` has
// the scratch_bytes of sums_over(s).
template <class T, class V, class Function>
void sum_values(const sdk::Call& call, const Spread& s, const T* x, const T* g,
                const Function& function, double* scratch, V* sums, bool accumulate) {
  sums_over(s).run(call, detail::SpreadTerm<Function, T>{SpreadPlaces(s), function, x, g}, scratch,
                   detail::StoreSum<V>{sums, accumulate});
}

}  // namespace tandem::layers
