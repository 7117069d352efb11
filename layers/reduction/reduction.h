// Reduction: y = coeff * the SUM, ASUM (of absolute values), SUMSQ (of squares) or MEAN over all
// axes from `axis` on, as in Caffe. Axis 0, Caffe's default, would reduce over the batch, which is
// divided over the devices. It is refused here; for a loss the host replaces the layer by two.
#pragma once

#include <vector>

#include "layers/common/axes.h"

namespace tandem::layers {

struct Reduction : sdk::LayerType {
  const char* name() const override { return "Reduction"; }
  const char* help() const override { return "a sum or mean over the axes from a given one on"; }
  std::vector<sdk::Parameter> parameters() const override {
    const char* block = "reduction_param";
    return {
        sdk::word(block, "operation")
            .by_default("SUM")
            .one_of("SUM|ASUM|SUMSQ|MEAN")
            .help("sum of values, absolute values or squares; or mean"),
        sdk::integer(block, "axis")
            .by_default("0")
            .range(-4, 3)
            .help("the first axis to reduce; 0, the batch, only with a loss_weight"),
        sdk::number(block, "coeff").by_default("1").help("the result's factor"),
    };
  }

  std::vector<sdk::Shape> shapes(const sdk::Query& query) const override {
    const size_t axis = sample_axis(query.attributes.integer("axis"), query.input(0));
    Extents extents = extents_of(query.input(0));
    for (size_t i = axis; i < extents.size(); ++i) extents[i] = 1;
    return {shape_of(extents)};
  }

  tandem_layer_cost cost(const sdk::Query& query) const override {
    const auto x = static_cast<double>(sdk::count(query.input(0)));
    return make_cost(x, x, 0, 4 * x, 8 * x, 0);
  }
};

}  // namespace tandem::layers
