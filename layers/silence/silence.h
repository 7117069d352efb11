// Silence: consumes any number of inputs, so that they are not outputs of the net. It has no
// outputs and no gradients.
#pragma once

#include "plugins/sdk.h"

namespace tandem::layers {

struct Silence : sdk::LayerType {
  const char* name() const override { return "Silence"; }
  const char* help() const override { return "consumes inputs and has no outputs"; }
  sdk::Inputs inputs() const override {
    return {sdk::Input("data").non_differentiable().repeated()};
  }
  sdk::Arity outputs() const override { return {0, 0}; }
  uint64_t traits() const override { return TANDEM_PER_SAMPLE; }
  tandem_layer_cost cost(const sdk::Query&) const override { return make_cost(0, 0, 0, 0, 0, 0); }
};

}  // namespace tandem::layers
