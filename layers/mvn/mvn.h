// MVN: y = (x - mean) / (standard deviation + eps) over each channel of a row, or over the whole
// row (across_channels), as in Caffe. The deviation is that of the values themselves, not an
// estimate for a larger population. Without normalize_variance only the mean is subtracted.
#pragma once

#include <vector>

#include "plugins/sdk.h"

namespace tandem::layers {

struct MeanVarianceNormalisation : sdk::LayerType {
  const char* name() const override { return "MVN"; }
  const char* help() const override { return "mean 0 and variance 1 for each channel of a row"; }
  std::vector<sdk::Parameter> parameters() const override {
    const char* block = "mvn_param";
    return {
        sdk::boolean(block, "normalize_variance")
            .by_default("true")
            .help("false: only subtract the mean"),
        sdk::boolean(block, "across_channels").by_default("false").help("over the whole row"),
        sdk::number(block, "eps")
            .by_default("1e-9")
            .range(0, 1e9)
            .help("added to the standard deviation"),
    };
  }
  uint64_t traits() const override {
    return TANDEM_PER_SAMPLE | TANDEM_IN_PLACE | TANDEM_BACKWARD_READS_OUTPUTS;
  }
  tandem_layer_cost cost(const sdk::Query& query) const override {
    const auto x = static_cast<double>(sdk::count(query.input(0)));
    return make_cost(5 * x, 7 * x, 0, 16 * x, 20 * x, 0);
  }
};

}  // namespace tandem::layers
