// BNLL: y = log(1 + exp(x)), binomial normal log likelihood (today's softplus); element by element.
#pragma once

#include "plugins/sdk.h"

namespace tandem::layers {

struct Bnll : sdk::LayerType {
  const char* name() const override { return "BNLL"; }
  const char* help() const override { return "log(1 + exp(x)), element by element"; }
  uint64_t traits() const override {
    return TANDEM_PER_SAMPLE | TANDEM_IN_PLACE | TANDEM_SLICED_OUTPUTS | TANDEM_SAVES_NOTHING |
           TANDEM_BACKWARD_READS_INPUTS;
  }
};

}  // namespace tandem::layers
