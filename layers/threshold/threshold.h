// Threshold: y = 1 for x > threshold, 0 otherwise, element by element. It has no gradient, so that
// the layers before it are not trained through it.
#pragma once

#include <vector>

#include "plugins/sdk.h"

namespace tandem::layers {

struct Threshold : sdk::LayerType {
  const char* name() const override { return "Threshold"; }
  const char* help() const override { return "1 above a threshold, 0 elsewhere; no gradient"; }
  std::vector<sdk::Parameter> parameters() const override {
    return {sdk::number("threshold_param", "threshold")
                .by_default("0")
                .help("an input above it gives 1")};
  }
  sdk::Inputs inputs() const override { return {sdk::Input("data").non_differentiable()}; }
  uint64_t traits() const override { return TANDEM_PER_SAMPLE | TANDEM_IN_PLACE; }
};

}  // namespace tandem::layers
