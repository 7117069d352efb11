// LayerNorm: y = (x - mean) / sqrt(variance + eps) * weight + bias over the channels of each pixel
// (Ba, Kiros, Hinton 2016; this form is that of current convolutional nets). weight and bias have
// one value per channel and begin as 1 and 0; with `affine: false` there are none.
#pragma once

#include <vector>

#include "plugins/sdk.h"

namespace tandem::layers {

struct LayerNorm : sdk::LayerType {
  const char* name() const override { return "LayerNorm"; }
  const char* help() const override { return "mean 0 and variance 1 over the channels of a pixel"; }
  std::vector<sdk::Parameter> parameters() const override {
    const char* block = "layer_norm_param";
    return {
        sdk::integer(block, "axis").by_default("1").range(1, 1).help("the channel axis"),
        sdk::number(block, "eps")
            .by_default("1e-5")
            .range(1e-30, 1e9)
            .help("added to the variance"),
        sdk::boolean(block, "affine").by_default("true").help("a learned weight and bias"),
    };
  }
  std::vector<sdk::Weight> weights(const sdk::Query& query) const override {
    if (!query.attributes.boolean("affine")) return {};
    const sdk::Shape shape{query.input(0).c, 1, 1, 1};
    return {{.name = "weight", .shape = shape, .initial = 1}, {.name = "bias", .shape = shape}};
  }
  tandem_layer_cost cost(const sdk::Query& query) const override {
    const auto x = static_cast<double>(sdk::count(query.input(0)));
    return make_cost(7 * x, 9 * x, 4 * x, 12 * x, 16 * x, 8 * x);
  }
};

}  // namespace tandem::layers
