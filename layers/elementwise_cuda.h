// Kernels of layers that work element by element, on a gpu: one thread an element, in whatever
// order the elements lie. Output may be input's memory, and a gradient the other's.
#pragma once

#include <cstdint>

#include "layers/slope.h"
#include "plugins/cuda/elements.h"
#include "plugins/cuda/places.h"
#include "plugins/cuda/teams.h"
#include "plugins/sdk.h"

namespace tandem::layers {

namespace detail {

template <class Formula, class T>
struct ElementwiseForward {
  TANDEM_HOST_DEVICE void operator()(int64_t i) const {
    cuda::store(formula.value(cuda::load(x[i])), y[i]);
  }
  Formula formula;
  const T* x;
  T* y;
};

template <class Formula, class T>
struct ElementwiseBackward {
  TANDEM_HOST_DEVICE void operator()(int64_t i) const {
    const float v = cuda::load(slope_source[i]), gradient = cuda::load(dy[i]);
    if constexpr (requires { formula.gradient(v, v); }) {
      cuda::store(formula.gradient(v, gradient), dx[i]);
    } else {
      cuda::store(gradient * formula.slope(v), dx[i]);
    }
  }
  Formula formula;
  const T *slope_source, *dy;
  T* dx;
};

}  // namespace detail

// Of a layer without a gradient.
template <class Formula>
class ElementwiseForwardCuda {
 public:
  ElementwiseForwardCuda(const sdk::Binding& binding, const sdk::Call&)
      : formula_(binding.attributes),
        elements_(sdk::count(binding.input(0).shape)),
        dtype_(binding.input(0).dtype) {}

  static constexpr uint32_t dtypes = cuda::all_dtypes;

  static sdk::LayoutOptions layouts(const sdk::Binding&) { return cuda::plain_layouts(); }

  void forward(const sdk::Call& call, const sdk::Pass& pass) const {
    cuda::with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      cuda::for_each(call, elements_,
                     detail::ElementwiseForward<Formula, T>{formula_, cuda::input<T>(pass, 0),
                                                            cuda::output<T>(pass, 0)});
    });
  }

 protected:
  Formula formula_;
  int64_t elements_;
  int32_t dtype_;
};

// A Formula is what slope.h describes.
template <class Formula>
class ElementwiseCuda : public ElementwiseForwardCuda<Formula> {
 public:
  using ElementwiseForwardCuda<Formula>::ElementwiseForwardCuda;

  void backward_data(const sdk::Call& call, const sdk::Pass& pass) const {
    cuda::with_elements(this->dtype_, [&](auto element) {
      using T = decltype(element);
      const T* v = Formula::slope_from == SlopeFrom::input ? cuda::input<T>(pass, 0)
                                                           : cuda::output<T>(pass, 0);
      cuda::for_each(call, this->elements_,
                     detail::ElementwiseBackward<Formula, T>{this->formula_, v,
                                                             cuda::output_gradient<T>(pass, 0),
                                                             cuda::input_gradient<T>(pass, 0)});
    });
  }
};

}  // namespace tandem::layers
