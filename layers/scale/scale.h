// Scale: y = a x, or a x + b, with one factor a for each index of the covered axes (by default the
// channel). a is trained, or a second input with values for each row of the batch.
#pragma once

#include <vector>

#include "layers/common/covered_axes.h"
#include "plugins/sdk.h"

namespace tandem::layers {

struct Scale : sdk::LayerType {
  const char* name() const override { return "Scale"; }
  const char* help() const override { return "multiplies by trained factors or a second input"; }
  std::vector<sdk::Parameter> parameters() const override {
    std::vector<sdk::Parameter> result = covered_axes_parameters("scale_param");
    result.push_back(sdk::filler("scale_param", "filler").help("initial factors; default 1"));
    result.push_back(sdk::boolean("scale_param", "bias_term")
                         .by_default("false")
                         .help("adds a trained bias as well"));
    result.push_back(
        sdk::filler("scale_param", "bias_filler").by_default("constant").help("initial biases"));
    return result;
  }
  sdk::Inputs inputs() const override {
    return {sdk::Input("data"), sdk::Input("factor").optional()};
  }
  uint64_t traits() const override {
    return TANDEM_PER_SAMPLE | TANDEM_IN_PLACE | TANDEM_BACKWARD_READS_INPUTS;
  }
  std::vector<sdk::Shape> shapes(const sdk::Query& query) const override {
    static_cast<void>(axes_of(query));
    if (query.input_count() == 2 && query.attributes.boolean("bias_term")) {
      throw sdk::unsupported(
          "bias_term with two inputs would need a bias for each row of the "
          "batch: add a Bias layer after it");
    }
    return {query.input(0)};
  }
  std::vector<sdk::Weight> weights(const sdk::Query& query) const override {
    if (query.input_count() == 2) return {};
    const sdk::Shape shape = shape_of_weight(query.input(0), axes_of(query));
    std::vector<sdk::Weight> result{
        {.name = "weight", .shape = shape, .filler = "filler", .initial = 1}};
    if (query.attributes.boolean("bias_term")) {
      result.push_back({.name = "bias", .shape = shape, .filler = "bias_filler"});
    }
    return result;
  }
  tandem_layer_cost cost(const sdk::Query& query) const override {
    const auto elements = static_cast<double>(sdk::count(query.input(0)));
    return make_cost(2 * elements, elements, 3 * elements, 8 * elements, 8 * elements,
                     8 * elements);
  }
};

}  // namespace tandem::layers
