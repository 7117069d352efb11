// HardSigmoid: y = x / 6 + 1/2 between 0 and 1; HardSwish: y = x * HardSigmoid(x) (Howard et al.:
// Searching for MobileNetV3, 2019); element by element. HardSigmoid can run in place, since its
// slope is computed from the output.
#pragma once

#include "layers/common/elementwise.h"
#include "plugins/sdk.h"

namespace tandem::layers {

struct HardSigmoid : ElementwiseLayer<SlopeFrom::output> {
  const char* name() const override { return "HardSigmoid"; }
  const char* help() const override { return "x / 6 + 1/2, limited to 0 and 1"; }
};

struct HardSwish : ElementwiseLayer<SlopeFrom::input> {
  const char* name() const override { return "HardSwish"; }
  const char* help() const override { return "x * HardSigmoid(x), element by element"; }
};

}  // namespace tandem::layers
