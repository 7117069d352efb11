// Swish: y = x / (1 + exp(-beta x)) (Ramachandran et al. 2017), and SiLU, which is Swish with a
// beta of 1; element by element.
#pragma once

#include <vector>

#include "layers/common/elementwise.h"
#include "plugins/sdk.h"

namespace tandem::layers {

struct Swish : ElementwiseLayer<SlopeFrom::input> {
  const char* name() const override { return "Swish"; }
  const char* help() const override { return "x * sigmoid(beta * x), element by element"; }
  std::vector<sdk::Parameter> parameters() const override {
    return {sdk::number("swish_param", "beta").by_default("1").help("steepness of the sigmoid")};
  }
};

struct SigmoidLinearUnit : Swish {
  const char* name() const override { return "SiLU"; }
  const char* help() const override { return "x * sigmoid(x), element by element"; }
  std::vector<sdk::Parameter> parameters() const override { return {}; }
};

}  // namespace tandem::layers
