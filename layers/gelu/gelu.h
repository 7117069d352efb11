// GELU: y = x P(x), with P the standard normal distribution (Hendrycks and Gimpel 2016), or its
// approximation y = x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))); element by element.
#pragma once

#include <vector>

#include "layers/common/elementwise.h"
#include "plugins/sdk.h"

namespace tandem::layers {

struct Gelu : ElementwiseLayer<SlopeFrom::input> {
  const char* name() const override { return "GELU"; }
  const char* help() const override { return "Gaussian error linear unit, element by element"; }
  std::vector<sdk::Parameter> parameters() const override {
    return {sdk::word("gelu_param", "approximate")
                .by_default("none")
                .one_of("none|tanh")
                .help("none: by the error function; tanh: the approximation by tanh")};
  }
};

}  // namespace tandem::layers
