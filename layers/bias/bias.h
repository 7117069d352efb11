// Bias: y = x + b with one b for each index of the covered axes (by default the channel). b is
// trained, or a second input with values for each row of the batch. Can run in place.
#pragma once

#include <vector>

#include "layers/common/covered_axes.h"
#include "plugins/sdk.h"

namespace tandem::layers {

struct Bias : sdk::LayerType {
  const char* name() const override { return "Bias"; }
  const char* help() const override { return "adds trained values or a second input"; }
  std::vector<sdk::Parameter> parameters() const override {
    std::vector<sdk::Parameter> result = covered_axes_parameters("bias_param");
    result.push_back(
        sdk::filler("bias_param", "filler").by_default("constant").help("initial values"));
    return result;
  }
  sdk::Inputs inputs() const override {
    return {sdk::Input("data"), sdk::Input("term").optional()};
  }
  uint64_t traits() const override { return TANDEM_PER_SAMPLE | TANDEM_IN_PLACE; }
  std::vector<sdk::Shape> shapes(const sdk::Query& query) const override {
    static_cast<void>(axes_of(query));
    return {query.input(0)};
  }
  std::vector<sdk::Weight> weights(const sdk::Query& query) const override {
    if (query.input_count() == 2) return {};
    return {{.name = "bias",
             .shape = shape_of_weight(query.input(0), axes_of(query)),
             .filler = "filler"}};
  }
  tandem_layer_cost cost(const sdk::Query& query) const override {
    const auto elements = static_cast<double>(sdk::count(query.input(0)));
    return make_cost(elements, 0, elements, 8 * elements, 8 * elements, 4 * elements);
  }
};

}  // namespace tandem::layers
