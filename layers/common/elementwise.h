// What layers that work element by element share: the traits of their types, and what a formula is.
//
// A formula is the arithmetic of such a layer. It is made from a binding's attributes, is trivially
// copyable, runs on host and device, and has
//   float value(float x) const;
// and, if the layer has a gradient,
//   static constexpr SlopeFrom slope_from;
//   float slope(float v) const;                  dy/dx, computed from x or from y
// or, if a product with dy would be wrong, in place of slope
//   float gradient(float v, float dy) const;
// A formula whose attributes choose one of several functions has, in place of value and slope,
//   template <class Body> void choose(const Body& body) const;
// which calls body(function) with the chosen one, so that no loop over elements contains the
// choice.
#pragma once

#include <cstdint>

#include "plugins/sdk.h"

namespace tandem::layers {

// Whether a slope is computed from the layer's input or from its output.
enum class SlopeFrom { input, output };

template <class Formula>
concept Differentiable = requires {
  Formula::slope_from;
};

// The type of a layer with a gradient. With SlopeFrom::output, the output may overwrite the input
// also in training.
template <SlopeFrom from>
struct ElementwiseLayer : sdk::LayerType {
  uint64_t traits() const override {
    return TANDEM_PER_SAMPLE | TANDEM_IN_PLACE | TANDEM_SLICED_OUTPUTS | TANDEM_SAVES_NOTHING |
           (from == SlopeFrom::input ? TANDEM_BACKWARD_READS_INPUTS
                                     : TANDEM_BACKWARD_READS_OUTPUTS);
  }
};

// body(function) with the formula's chosen function, or with the formula itself.
template <class Formula, class Body>
void with_function(const Formula& formula, const Body& body) {
  if constexpr (requires { formula.choose(body); }) {
    formula.choose(body);
  } else {
    body(formula);
  }
}

// dx from dy, where v is x or y. dy is loaded even if the gradient is zero: a loop with a load that
// depends on a comparison cannot be vectorized.
template <class Function>
TANDEM_HOST_DEVICE float gradient_of(const Function& function, float v, float dy) {
  if constexpr (requires { function.gradient(v, dy); }) {
    return function.gradient(v, dy);
  } else {
    return dy * function.slope(v);
  }
}

}  // namespace tandem::layers
