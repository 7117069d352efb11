// Power: y = (shift + scale x)^power, element by element. A negative base has a value only if
// `power` is a whole number.
#pragma once

#include <vector>

#include "layers/common/elementwise.h"
#include "plugins/sdk.h"

namespace tandem::layers {

struct Power : ElementwiseLayer<SlopeFrom::input> {
  const char* name() const override { return "Power"; }
  const char* help() const override { return "(shift + scale * x) ^ power, element by element"; }
  std::vector<sdk::Parameter> parameters() const override {
    return {
        sdk::number("power_param", "power").by_default("1").help("the exponent"),
        sdk::number("power_param", "scale").by_default("1").help("factor of the input"),
        sdk::number("power_param", "shift").by_default("0").help("added to the scaled input"),
    };
  }
};

}  // namespace tandem::layers
