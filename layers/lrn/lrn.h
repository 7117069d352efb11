// LRN: local response normalization, as in Caffe. Across channels: y = x * (k + alpha / n *
// S)^-beta, where S is the sum of the squares of the n = local_size nearest channels. Within a
// channel: the same over a window of n = local_size^2 pixels around each pixel, with k = 1.
#pragma once

#include <vector>

#include "layers/common/engine_parameter.h"
#include "plugins/sdk.h"

namespace tandem::layers {

struct LocalResponseNormalisation : sdk::LayerType {
  const char* name() const override { return "LRN"; }
  const char* help() const override { return "divides by the energy of the neighbors"; }
  std::vector<sdk::Parameter> parameters() const override {
    const char* block = "lrn_param";
    return {
        sdk::integer(block, "local_size")
            .by_default("5")
            .range(1, 1e4)
            .help("channels, or pixels on each axis; odd"),
        sdk::number(block, "alpha").by_default("1").help("scale of the sum of squares"),
        sdk::number(block, "beta").by_default("0.75").help("exponent"),
        sdk::number(block, "k").by_default("1").help("added to the scaled sum; within a channel 1"),
        sdk::word(block, "norm_region")
            .by_default("ACROSS_CHANNELS")
            .one_of("ACROSS_CHANNELS|WITHIN_CHANNEL")
            .help("the neighbors: channels, or pixels"),
        engine_parameter(block),
    };
  }

  std::vector<sdk::Shape> shapes(const sdk::Query& query) const override {
    const int64_t size = query.attributes.integer("local_size");
    if (size % 2 == 0) {
      throw sdk::invalid("local_size ", size, " is even, but needs a middle element: write ",
                         size - 1, " or ", size + 1);
    }
    return {query.input(0)};
  }

  tandem_layer_cost cost(const sdk::Query& query) const override {
    const auto elements = static_cast<double>(sdk::count(query.input(0)));
    const auto size = static_cast<double>(query.attributes.integer("local_size"));
    const double flops = elements * (2 * size + 10);  // 10 for the power
    return make_cost(flops, 2 * flops, 0, 8 * elements, 12 * elements, 0);
  }
};

}  // namespace tandem::layers
