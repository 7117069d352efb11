// The two loops over a tensor and the values that are broadcast over it (broadcast.h), on a GPU:
// one applies the values, the other sums the terms of each value.
#pragma once

#include <cstdint>

#include "layers/covered_axes.h"
#include "layers/fused_relu_cuda.h"
#include "plugins/cuda/elements.h"
#include "plugins/cuda/tensor_sums.h"

namespace tandem::layers {

// The values of neighbouring elements: either neighbouring values from `first` on, or `first` for
// lanes below `change` and `next` for the others.
struct ValueLanes {
  int64_t first, next;
  int change;
};

// The index arithmetic of a Broadcast in device code.
struct BroadcastIndex {
  BroadcastIndex() = default;
  explicit BroadcastIndex(const Broadcast& s)
      : pixels(s.pixels), width(s.width), period(s.period) {}

  // The value of the element that lies at `index`.
  [[nodiscard]] TANDEM_HOST_DEVICE int64_t value_of(int64_t index) const {
    const int64_t pixel = cuda::quotient(index, width);
    if (period == 1) return index - pixel * width;
    const int64_t tile = cuda::quotient(pixel, pixels);
    const int64_t position = tile - cuda::quotient(tile, period) * period;
    return position * width + (index - pixel * width);
  }
  // Whether lanes_of<n>() is possible for indices that are multiples of n, with take() of `values`
  // or of further rows of `width` values behind them.
  template <class... V>
  [[nodiscard]] bool has_lanes(int n, const V*... values) const {
    if (width == 1) return pixels >= n;
    return width % n == 0 && cuda::are_aligned(values...);
  }
  // The values of the elements that lie at `index` and behind it.
  template <int n>
  [[nodiscard]] TANDEM_HOST_DEVICE ValueLanes lanes_of(int64_t index) const {
    if (n == 1 || width > 1) return {value_of(index), 0, 1};
    const int64_t tile = cuda::quotient(index, pixels);
    const int64_t position = tile - cuda::quotient(tile, period) * period;
    const int64_t left = (tile + 1) * pixels - index;
    return {position, position + 1 < period ? position + 1 : 0,
            left < n ? static_cast<int>(left) : n};
  }
  // Those of `values`.
  template <int n, class V>
  [[nodiscard]] TANDEM_HOST_DEVICE cuda::Values<n> take(const V* values,
                                                        const ValueLanes& lanes) const {
    if constexpr (n > 1) {
      if (width > 1) {
        const cuda::Elements<V, n> all = cuda::read<n>(values + lanes.first);
        return cuda::each_lane<n>([&](int lane) { return all[lane]; });
      }
    }
    const float first = cuda::load(values[lanes.first]);
    if constexpr (n == 1) return {{first}};
    const float next = cuda::load(values[lanes.next]);
    return cuda::each_lane<n>([&](int lane) { return lane < lanes.change ? first : next; });
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
  static constexpr int at_once = cuda::elements_at_once<T>;
  [[nodiscard]] bool can_vectorize() const {
    return cuda::are_aligned(x, g, y) && index.has_lanes(at_once, a, b);
  }
  template <int n>
  [[nodiscard]] TANDEM_HOST_DEVICE auto read(int64_t i) const {
    return cuda::read_two<n>(x + i, g + i);
  }
  template <int n>
  TANDEM_HOST_DEVICE void write(int64_t i, const cuda::TwoElements<T, n>& v) const {
    const ValueLanes lanes = index.lanes_of<n>(i);
    const cuda::Values<n> as = index.take<n>(a, lanes), bs = index.take<n>(b, lanes);
    const auto value = [&](int lane) {
      return function(v.first[lane], v.second[lane], as[lane], bs[lane]);
    };
    write_with_relu(cuda::each_lane<n>(value), y + i, fuses_relu);
  }
  BroadcastIndex index;
  Function function;
  const T *x, *g;
  const V *a, *b;
  T* y;
  bool fuses_relu;
};

template <class Function, class T>
struct BroadcastTerms {
  using Element = T;
  static constexpr int ahead = 4;
  [[nodiscard]] bool are_aligned() const { return cuda::are_aligned(x, g); }
  template <int m>
  [[nodiscard]] TANDEM_HOST_DEVICE cuda::NoConstants groups(int64_t) const {
    return {};
  }
  template <int n, bool aligned>
  [[nodiscard]] TANDEM_HOST_DEVICE auto read(int64_t i) const {
    return cuda::read_two<n, aligned>(x + i, g + i);
  }
  template <int n>
  [[nodiscard]] TANDEM_HOST_DEVICE float value(const cuda::NoConstants&, int,
                                               const cuda::TwoElements<T, n>& v, int lane) const {
    return function(v.first[lane], v.second[lane]);
  }
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
cuda::TensorSums<Value> sums_over(const Broadcast& s) {
  return cuda::TensorSums<Value>({s.tiles, s.pixels, s.width, s.period, s.width});
}

// For every value: sums = the sum of function(x, g) over its elements, or sums += it. `scratch` has
// the scratch_bytes of sums_over(s).
template <class T, class V, class Function>
void sum_values(const sdk::Call& call, const Broadcast& s, const T* x, const T* g,
                const Function& function, double* scratch, V* sums, bool accumulate) {
  sums_over(s).run(call, detail::BroadcastTerms<Function, T>{function, x, g}, scratch,
                   detail::StoreSum<V>{sums, accumulate});
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
