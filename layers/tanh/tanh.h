// TanH: the hyperbolic tangent, element by element, in place if wanted. The slope 1 - y^2 is told
// from the output, so the input's memory may be reused for it.
#pragma once

#include <vector>

#include "plugins/sdk.h"

namespace tandem::layers {

struct HyperbolicTangent : sdk::LayerType {
  const char* name() const override { return "TanH"; }
  const char* help() const override { return "hyperbolic tangent, element by element"; }
  std::vector<sdk::Parameter> parameters() const override {
    return {sdk::word("tanh_param", "engine")
                .by_default("DEFAULT")
                .one_of("DEFAULT|CAFFE|CUDNN")
                .help("ignored: the device decides")};
  }
  uint64_t traits() const override {
    return TANDEM_PER_SAMPLE | TANDEM_IN_PLACE | TANDEM_SLICED_OUTPUTS | TANDEM_SAVES_NOTHING |
           TANDEM_BACKWARD_READS_OUTPUTS;
  }
};

}  // namespace tandem::layers
