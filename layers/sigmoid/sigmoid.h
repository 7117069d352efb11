// Sigmoid: y = 1 / (1 + exp(-x)), element by element, in place if wanted. The slope y (1 - y) is
// told from the output, so the input's memory may be reused for it.
#pragma once

#include <vector>

#include "layers/elementwise.h"
#include "layers/engine_parameter.h"
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
