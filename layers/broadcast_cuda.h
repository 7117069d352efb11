// The two loops over a tensor and the values that are broadcast over it (broadcast.h), on a GPU:
// one applies the values, the other sums the terms of each value.
#pragma once

#include <cstdint>

#include "layers/covered_axes.h"
#include "layers/fused_relu_cuda.h"
#include "plugins/cuda/elements.h"
#include "plugins/cuda/sums.h"

namespace tandem::layers {

// The index arithmetic of a Broadcast in device code.
struct BroadcastIndex {
  BroadcastIndex() = default;
  explicit BroadcastIndex(const Broadcast& s)
      : pixels(s.pixels), width(s.width), period(s.period) {}

  // The value of the element that lies at `index`.
  [[nodiscard]] TANDEM_HOST_DEVICE int64_t value_of(int64_t index) const {
    const int64_t pixel = cuda::quotient(index, width);
    const int64_t tile = cuda::quotient(pixel, pixels);
    const int64_t position = tile - cuda::quotient(tile, period) * period;
    return position * width + (index - pixel * width);
  }
  // The index of the element number `k` of value `value`.
  [[nodiscard]] TANDEM_HOST_DEVICE int64_t index_of(int64_t value, int64_t k) const {
    const int64_t position = cuda::quotient(value, width), repeat = cuda::quotient(k, pixels);
    const int64_t pixel = (repeat * period + position) * pixels + (k - repeat * pixels);
    return pixel * width + (value - position * width);
  }

  cuda::Divisor pixels, width, period;
};

namespace detail {

template <class Function, class T, class V>
struct AppliedValues {
  TANDEM_HOST_DEVICE void operator()(int64_t i) const {
    const int64_t value = index.value_of(i);
    store_with_relu(
        function(cuda::load(x[i]), cuda::load(g[i]), cuda::load(a[value]), cuda::load(b[value])),
        y[i], fuses_relu);
  }
  BroadcastIndex index;
  Function function;
  const T *x, *g;
  const V *a, *b;
  T* y;
  bool fuses_relu;
};

template <class Function, class T>
struct BroadcastTerm {
  TANDEM_HOST_DEVICE double operator()(int64_t value, int64_t k) const {
    const int64_t i = index.index_of(value, k);
    return static_cast<double>(function(cuda::load(x[i]), cuda::load(g[i])));
  }
  BroadcastIndex index;
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

// y = function(x, g, a, b), where x, g and y are tensors and a and b the values of their elements.
// An argument that the function does not use may be any readable memory of its size; y may be x or
// g. fuses_relu: then y = ReLU(y).
template <class T, class V, class Function>
void apply_values(const sdk::Call& call, const Broadcast& s, const T* x, const T* g, const V* a,
                  const V* b, T* y, const Function& function, bool fuses_relu = false) {
  cuda::for_each(call, s.elements(),
                 detail::AppliedValues<Function, T, V>{BroadcastIndex(s), function, x, g, a, b, y,
                                                       fuses_relu});
}

template <class Value = double>
cuda::GroupSums<Value> sums_over(const Broadcast& s) {
  return {s.values(), s.repeats() * s.pixels, s.width > 1};
}

// For every value: sums = the sum of function(x, g) over its elements, or sums += it. `scratch` has
// the scratch_bytes of sums_over(s).
template <class T, class V, class Function>
void sum_values(const sdk::Call& call, const Broadcast& s, const T* x, const T* g,
                const Function& function, double* scratch, V* sums, bool accumulate) {
  sums_over(s).run(call, detail::BroadcastTerm<Function, T>{BroadcastIndex(s), function, x, g},
                   scratch, detail::StoreSum<V>{sums, accumulate});
}

// What Bias and Scale have in common: values that are trained, or a second input, and a fused ReLU.
class BroadcastKernelCuda : public sdk::Needs {
 public:
  explicit BroadcastKernelCuda(const sdk::Binding& binding)
      : broadcast_(binding.input(0), axes_of(binding)),
        dtype_(binding.input(0).dtype),
        trained_(binding.input_count() == 1),
        fuses_relu_(binding.fuses_relu()) {
    if (trained_ || !broadcast_.one_value_per_element()) {
      scratch_bytes = sums_over(broadcast_).scratch_bytes();
    }
  }

  static constexpr uint32_t dtypes = cuda::all_dtypes;
  static constexpr uint32_t fused_activations = relu_only;

  static sdk::LayoutOptions layouts(const sdk::Binding& binding) {
    if (axes_of(binding).fits_any_layout()) return cuda::plain_layouts();
    return {{TANDEM_NCHW, TANDEM_NCHW, 0}};
  }

 protected:
  Broadcast broadcast_;
  int32_t dtype_;
  bool trained_, fuses_relu_;
};

}  // namespace tandem::layers
