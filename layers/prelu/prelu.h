// PReLU: y = x for x > 0, a x otherwise. The slopes a are trained, one for each channel or one for
// all (He et al. 2015).
#pragma once

#include <vector>

#include "layers/common/broadcast.h"
#include "plugins/sdk.h"

namespace tandem::layers {

struct ParametricRelu : sdk::LayerType {
  const char* name() const override { return "PReLU"; }
  const char* help() const override { return "rectified linear unit whose slopes are trained"; }
  std::vector<sdk::Parameter> parameters() const override {
    return {
        sdk::filler("prelu_param", "filler").help("initial slopes; default 0.25"),
        sdk::boolean("prelu_param", "channel_shared")
            .by_default("false")
            .help("one slope for all channels"),
    };
  }
  uint64_t traits() const override {
    return TANDEM_PER_SAMPLE | TANDEM_IN_PLACE | TANDEM_BACKWARD_READS_INPUTS;
  }
  static CoveredAxes axes(const sdk::Attributes& attributes) {
    return {1, attributes.boolean("channel_shared") ? 0 : 1};
  }
  std::vector<sdk::Weight> weights(const sdk::Query& query) const override {
    const int64_t slopes = query.attributes.boolean("channel_shared") ? 1 : query.input(0).c;
    return {{.name = "weight", .shape = {slopes, 1, 1, 1}, .filler = "filler", .initial = 0.25}};
  }
  tandem_layer_cost cost(const sdk::Query& query) const override {
    const auto elements = static_cast<double>(sdk::count(query.input(0)));
    return make_cost(elements, elements, 2 * elements, 8 * elements, 12 * elements, 8 * elements);
  }
};

}  // namespace tandem::layers
