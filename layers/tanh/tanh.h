// TanH: the hyperbolic tangent, element by element; can run in place, since the slope 1 - y^2 is
// computed from the output.
#pragma once

#include <vector>

#include "layers/common/elementwise.h"
#include "layers/common/engine_parameter.h"
#include "plugins/sdk.h"

namespace tandem::layers {

struct HyperbolicTangent : ElementwiseLayer<SlopeFrom::output> {
  const char* name() const override { return "TanH"; }
  const char* help() const override { return "hyperbolic tangent, element by element"; }
  std::vector<sdk::Parameter> parameters() const override {
    return {engine_parameter("tanh_param")};
  }
};

}  // namespace tandem::layers
