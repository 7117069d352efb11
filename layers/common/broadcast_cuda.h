// The two loops over a tensor and the values that are broadcast over it (broadcast.h), on a GPU:
// one applies the values, the other sums the terms of each value.
#pragma once

#include <cstdint>

#include "layers/common/covered_axes.h"
#include "layers/common/fused_relu_cuda.h"
#include "plugins/cuda/elements.h"
#include "plugins/cuda/tensor_groups.h"
#include "plugins/cuda/tensor_sums.h"

namespace tandem::layers {

// The index arithmetic of a Broadcast in device code.
struct BroadcastIndex {
  BroadcastIndex() = default;
  explicit BroadcastIndex(const Broadcast& s)
      : pixels(s.pixels), width(s.width), period(s.period) {}

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
  using Element = T;
  static constexpr int ahead = 4;
  static constexpr int resident = 2;
  [[nodiscard]] bool are_aligned() const { return cuda::are_aligned(x, g, y); }
  template <int m>
  struct Both {
    cuda::Values<m> a, b;
  };
  template <int m>
  [[nodiscard]] TANDEM_HOST_DEVICE Both<m> groups(int64_t value) const {
    return {cuda::constants<m>(a + value), cuda::constants<m>(b + value)};
  }
  template <int n>
  [[nodiscard]] TANDEM_HOST_DEVICE auto read(int64_t i) const {
    return cuda::read_two<n>(x + i, g + i);
  }
  template <int m, int n>
  [[nodiscard]] TANDEM_HOST_DEVICE float value(const Both<m>& values, int group,
                                               const cuda::TwoElements<T, n>& v, int lane) const {
    return function(v.first[lane], v.second[lane], values.a[group], values.b[group]);
  }
  template <int n>
  TANDEM_HOST_DEVICE void write(int64_t i, const cuda::Values<n>& values) const {
    write_with_relu(values, y + i, fuses_relu);
  }
  Function function;
  const T *x, *g;
  const V *a, *b;
  T* y;
  bool fuses_relu;
};

template <class Function>
concept FunctionOfOne = requires {
  Function::is_of_one;
};

template <class Function, class T>
struct BroadcastTerms {
  using Element = T;
  // Two tensors need twice as many registers.
  static constexpr int ahead = FunctionOfOne<Function> ? 4 : 2;
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

inline cuda::TermLayout layout_of(const Broadcast& s) {
  return {s.tiles, s.pixels, s.width, s.period, s.width};
}

// y = function(x, g, a, b), where x, g and y are tensors and a and b the values of their elements.
// An argument that the function does not use may be any readable memory of its size; y may be x or
// g. fuses_relu: then y = ReLU(y).
template <class T, class V, class Function>
void apply_values(const sdk::Call& call, const Broadcast& s, const T* x, const T* g, const V* a,
                  const V* b, T* y, const Function& function, bool fuses_relu = false) {
  cuda::for_groups(call, layout_of(s),
                   detail::AppliedValues<Function, T, V>{function, x, g, a, b, y, fuses_relu});
}

template <class Value = double>
cuda::TensorSums<Value> sums_over(const Broadcast& s) {
  return cuda::TensorSums<Value>(layout_of(s));
}

// For every value: sums = the sum of function(x, g) over its elements, or sums += it. A function of
// g alone has a member is_of_one. `scratch` has the scratch_bytes of sums_over(s).
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
