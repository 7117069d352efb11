// Swish: y = x / (1 + exp(-beta x)) (Ramachandran et al. 2017), and SiLU, which is Swish with a
// beta of 1; element by element.
#pragma once

#include <vector>

#include "plugins/sdk.h"

namespace tandem::layers {

struct Swish : sdk::LayerType {
  const char* name() const override { return "Swish"; }
  const char* help() const override { return "x * sigmoid(beta * x), element by element"; }
  std::vector<sdk::Parameter> parameters() const override {
    return {sdk::number("swish_param", "beta").by_default("1").help("steepness of the sigmoid")};
  }
  uint64_t traits() const override {
    return TANDEM_PER_SAMPLE | TANDEM_IN_PLACE | TANDEM_SLICED_OUTPUTS | TANDEM_SAVES_NOTHING |
           TANDEM_BACKWARD_READS_INPUTS;
  }
};

struct SigmoidLinearUnit : Swish {
  const char* name() const override { return "SiLU"; }
  const char* help() const override { return "x * sigmoid(x), element by element"; }
  std::vector<sdk::Parameter> parameters() const override { return {}; }
};

}  // namespace tandem::layers
