// Kernels on a GPU of layers that work element by element, in the order in which the elements lie.
// The output may use the input's memory, and so may their gradients.
#pragma once

#include <cstdint>
#include <type_traits>

#include "layers/common/elementwise.h"
#include "plugins/cuda/elements.h"
#include "plugins/cuda/indexing.h"
#include "plugins/cuda/teams.h"
#include "plugins/sdk.h"

namespace tandem::layers {

namespace detail {

template <class Function, class T>
struct ElementwiseForward {
  static constexpr int at_once = cuda::elements_at_once<T>;
  [[nodiscard]] bool can_vectorize() const { return cuda::are_aligned(x, y); }
  template <int n>
  [[nodiscard]] TANDEM_HOST_DEVICE auto read(int64_t i) const {
    return cuda::read<n>(x + i);
  }
  template <int n>
  TANDEM_HOST_DEVICE void write(int64_t i, const cuda::Elements<T, n>& v) const {
    cuda::write(cuda::each_lane<n>([&](int lane) { return function.value(v[lane]); }), y + i);
  }
  Function function;
  const T* x;
  T* y;
};

template <class Function, class T>
struct ElementwiseBackward {
  static constexpr int at_once = cuda::elements_at_once<T>;
  [[nodiscard]] bool can_vectorize() const { return cuda::are_aligned(slope_source, dy, dx); }
  template <int n>
  [[nodiscard]] TANDEM_HOST_DEVICE auto read(int64_t i) const {
    return cuda::read_two<n>(slope_source + i, dy + i);
  }
  template <int n>
  TANDEM_HOST_DEVICE void write(int64_t i, const cuda::TwoElements<T, n>& v) const {
    const auto gradient = [&](int lane) {
      return gradient_of(function, v.first[lane], v.second[lane]);
    };
    cuda::write(cuda::each_lane<n>(gradient), dx + i);
  }
  Function function;
  const T *slope_source, *dy;
  T* dx;
};

}  // namespace detail

// The whole kernel of a layer with the given formula (elementwise.h).
template <class Formula>
class ElementwiseCuda {
 public:
  ElementwiseCuda(const sdk::Binding& binding, const sdk::Call&)
      : formula_(binding.attributes),
        elements_(sdk::count(binding.input(0).shape)),
        dtype_(binding.input(0).dtype) {}

  static constexpr uint32_t dtypes = cuda::all_dtypes;

  static sdk::LayoutOptions layouts(const sdk::Binding&) { return cuda::plain_layouts(); }

  void forward(const sdk::Call& call, const sdk::DevicePass& pass) const {
    cuda::with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      with_function(formula_, [&](const auto& function) {
        using Function = std::decay_t<decltype(function)>;
        cuda::for_each(call, elements_,
                       detail::ElementwiseForward<Function, T>{function, pass.input<T>(0).get(),
                                                               pass.output<T>(0).get()});
      });
    });
  }

  void backward_data(const sdk::Call& call,
                     const sdk::DevicePass& pass) const requires Differentiable<Formula> {
    cuda::with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      const T* v = Formula::slope_from == SlopeFrom::input ? pass.input<T>(0).get()
                                                           : pass.output<T>(0).get();
      with_function(formula_, [&](const auto& function) {
        using Function = std::decay_t<decltype(function)>;
        cuda::for_each(
            call, elements_,
            detail::ElementwiseBackward<Function, T>{function, v, pass.output_gradient<T>(0).get(),
                                                     pass.input_gradient<T>(0).get()});
      });
    });
  }

 private:
  Formula formula_;
  int64_t elements_;
  int32_t dtype_;
};

}  // namespace tandem::layers
