// Kernels of layers that work element by element, on a gpu: one thread an element, in whatever
// order the elements lie. Output may be input's memory, and a gradient the other's.
#pragma once

#include <cstdint>

#include "layers/slope.h"
#include "plugins/cuda/places.h"
#include "plugins/cuda/teams.h"
#include "plugins/sdk.h"

namespace tandem::layers {

namespace detail {

template <class Formula>
struct ElementwiseForward {
  TANDEM_HOST_DEVICE void operator()(int64_t i) const { y[i] = formula.value(x[i]); }
  Formula formula;
  const float* x;
  float* y;
};

template <class Formula>
struct ElementwiseBackward {
  TANDEM_HOST_DEVICE void operator()(int64_t i) const {
    if constexpr (requires(float v) { formula.gradient(v, v); }) {
      dx[i] = formula.gradient(told_from[i], dy[i]);
    } else {
      dx[i] = dy[i] * formula.slope(told_from[i]);
    }
  }
  Formula formula;
  const float *told_from, *dy;
  float* dx;
};

}  // namespace detail

// Of a layer without a gradient.
template <class Formula>
class ElementwiseForwardCuda {
 public:
  ElementwiseForwardCuda(const sdk::Binding& binding, const sdk::Call&)
      : formula_(binding.attributes), elements_(sdk::count(binding.input(0).shape)) {}

  static sdk::LayoutOptions layouts(const sdk::Binding&) { return cuda::plain_layouts(); }

  void forward(const sdk::Call& call, const sdk::Pass& pass) const {
    cuda::for_each(call, elements_,
                   detail::ElementwiseForward<Formula>{formula_, pass.input(0), pass.output(0)});
  }

 protected:
  Formula formula_;
  int64_t elements_;
};

// A Formula is what slope.h describes.
template <class Formula>
class ElementwiseCuda : public ElementwiseForwardCuda<Formula> {
 public:
  using ElementwiseForwardCuda<Formula>::ElementwiseForwardCuda;

  void backward_data(const sdk::Call& call, const sdk::Pass& pass) const {
    const float* v = Formula::slope_from == SlopeFrom::input ? pass.input(0) : pass.output(0);
    cuda::for_each(call, this->elements_,
                   detail::ElementwiseBackward<Formula>{this->formula_, v, pass.output_gradient(0),
                                                        pass.input_gradient(0)});
  }
};

}  // namespace tandem::layers
