// HuberLoss (Huber, 1964): as EuclideanLoss, half the squared difference, for differences up to
// `delta`, and beyond it as steep as there, delta * (|difference| - delta / 2): the mean over the
// samples of the sum of their values. Only the prediction gets gradients.
#pragma once

#include <vector>

#include "layers/common/loss.h"
#include "plugins/sdk.h"

namespace tandem::layers {

struct HuberLoss : sdk::LayerType {
  const char* name() const override { return "HuberLoss"; }
  const char* help() const override {
    return "half the squared difference, linear beyond delta, mean over the samples";
  }
  sdk::Inputs inputs() const override { return {sdk::Input("data"), sdk::Input("target").label()}; }
  std::vector<sdk::Parameter> parameters() const override {
    return {sdk::number("huber_loss_param", "delta")
                .by_default("1")
                .range(1e-6, 1e6)
                .help("the difference from which on the loss is linear")};
  }
  uint64_t traits() const override { return TANDEM_LOSS | TANDEM_BACKWARD_READS_INPUTS; }
  std::vector<sdk::Shape> shapes(const sdk::Query& query) const override {
    require_pairs(query.input(0), query.input(1), "value");
    return {{1, 1, 1, 1}};
  }
};

}  // namespace tandem::layers
