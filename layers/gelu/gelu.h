// GELU: y = x P(x), with P the standard normal distribution (Hendrycks and Gimpel 2016), or its
// approximation y = x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))); element by element.
#pragma once

#include <vector>

#include "plugins/sdk.h"

namespace tandem::layers {

struct Gelu : sdk::LayerType {
  const char* name() const override { return "GELU"; }
  const char* help() const override { return "Gaussian error linear unit, element by element"; }
  std::vector<sdk::Parameter> parameters() const override {
    return {sdk::word("gelu_param", "approximate")
                .by_default("none")
                .one_of("none|tanh")
                .help("none: by the error function; tanh: the approximation by tanh")};
  }
  uint64_t traits() const override {
    return TANDEM_PER_SAMPLE | TANDEM_IN_PLACE | TANDEM_SLICED_OUTPUTS | TANDEM_SAVES_NOTHING |
           TANDEM_BACKWARD_READS_INPUTS;
  }
};

}  // namespace tandem::layers
