// Sigmoid: y = 1 / (1 + exp(-x)), element by element; can run in place, since the slope y (1 - y)
// is computed from the output.
#pragma once

#include <vector>

#include "layers/common/elementwise.h"
#include "layers/common/engine_parameter.h"
#include "plugins/sdk.h"

namespace tandem::layers {

struct Sigmoid : ElementwiseLayer<SlopeFrom::output> {
  const char* name() const override { return "Sigmoid"; }
  const char* help() const override { return "1 / (1 + exp(-x)), element by element"; }
  std::vector<sdk::Parameter> parameters() const override {
    return {engine_parameter("sigmoid_param")};
  }
};

}  // namespace tandem::layers
