// Softmax over the channels, at every pixel; or over the height or width (axis 2 or 3).
#pragma once

#include <vector>

#include "layers/common/engine_parameter.h"
#include "plugins/sdk.h"

namespace tandem::layers {

struct Softmax : sdk::LayerType {
  const char* name() const override { return "Softmax"; }
  const char* help() const override { return "turns scores into probabilities over the channels"; }
  std::vector<sdk::Parameter> parameters() const override {
    return {
        sdk::integer("softmax_param", "axis")
            .by_default("1")
            .range(1, 3)
            .help("the axis; 1: channels"),
        engine_parameter("softmax_param"),
    };
  }
  uint64_t traits() const override {
    return TANDEM_PER_SAMPLE | TANDEM_BACKWARD_READS_OUTPUTS | TANDEM_SAVES_NOTHING;
  }
  tandem_layer_cost cost(const sdk::Query& query) const override {
    const auto elements = static_cast<double>(sdk::count(query.input(0)));
    return make_cost(12 * elements, 4 * elements, 0, 8 * elements, 12 * elements, 0);
  }
};

}  // namespace tandem::layers
