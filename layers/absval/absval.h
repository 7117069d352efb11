// AbsVal: y = |x|, element by element; the slope at zero is zero.
#pragma once

#include "plugins/sdk.h"

namespace tandem::layers {

struct AbsoluteValue : sdk::LayerType {
  const char* name() const override { return "AbsVal"; }
  const char* help() const override { return "absolute value, element by element"; }
  uint64_t traits() const override {
    return TANDEM_PER_SAMPLE | TANDEM_IN_PLACE | TANDEM_SLICED_OUTPUTS | TANDEM_SAVES_NOTHING |
           TANDEM_BACKWARD_READS_INPUTS;
  }
};

}  // namespace tandem::layers
