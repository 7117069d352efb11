// ELU: y = x for x > 0, alpha (exp(x) - 1) otherwise (Clevert et al. 2015); element by element, in
// place if wanted. The slope below zero is y + alpha: the output tells it.
#pragma once

#include <vector>

#include "layers/elementwise.h"
#include "plugins/sdk.h"

namespace tandem::layers {

struct Elu : ElementwiseLayer<SlopeFrom::output> {
  const char* name() const override { return "ELU"; }
  const char* help() const override { return "exponential linear unit, element by element"; }
  std::vector<sdk::Parameter> parameters() const override {
    // Below zero, an output would not tell the sign of its input.
    return {sdk::number("elu_param", "alpha")
                .by_default("1")
                .range(0, 1e6)
                .help("-alpha is what large negative inputs go to")};
  }
};

}  // namespace tandem::layers
