// ELU: y = x for x > 0, alpha (exp(x) - 1) otherwise (Clevert et al. 2015), element by element; can
// run in place. The slope below zero is y + alpha, so that it is computed from the output.
#pragma once

#include <vector>

#include "layers/common/elementwise.h"
#include "plugins/sdk.h"

namespace tandem::layers {

struct Elu : ElementwiseLayer<SlopeFrom::output> {
  const char* name() const override { return "ELU"; }
  const char* help() const override { return "exponential linear unit, element by element"; }
  std::vector<sdk::Parameter> parameters() const override {
    // With a negative alpha, the sign of an output would not determine that of its input.
    return {sdk::number("elu_param", "alpha")
                .by_default("1")
                .range(0, 1e6)
                .help("the limit for large negative inputs is -alpha")};
  }
};

}  // namespace tandem::layers
