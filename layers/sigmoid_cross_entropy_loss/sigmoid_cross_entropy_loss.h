// SigmoidCrossEntropyLoss: the sum of -t log p - (1 - t) log(1 - p) with p = sigmoid(score) and a
// target t in [0, 1] for every score, divided by the number of samples unless normalization selects
// another divisor.
#pragma once

#include <vector>

#include "layers/common/loss.h"
#include "plugins/sdk.h"

namespace tandem::layers {

struct SigmoidCrossEntropyLoss : sdk::LayerType {
  const char* name() const override { return "SigmoidCrossEntropyLoss"; }
  const char* help() const override { return "cross entropy of sigmoid scores and targets"; }
  sdk::Inputs inputs() const override {
    return {sdk::Input("scores"), sdk::Input("label").label()};
  }
  std::vector<sdk::Parameter> parameters() const override { return loss_parameters("BATCH_SIZE"); }
  uint64_t traits() const override {
    return TANDEM_LOSS | TANDEM_BACKWARD_READS_INPUTS | TANDEM_BATCH_STATISTICS;
  }
  std::vector<sdk::Shape> shapes(const sdk::Query& query) const override {
    require_pairs(query.input(0), query.input(1), "target");
    return {{1, 1, 1, 1}};
  }
  sdk::Statistics statistics(const sdk::Query& query) const override {
    return {counts_labels(query.attributes) ? 1 : 0, 0};
  }
  tandem_layer_cost cost(const sdk::Query& query) const override {
    const auto elements = static_cast<double>(sdk::count(query.input(0)));
    return make_cost(25 * elements, 15 * elements, 0, 8 * elements, 12 * elements, 0);
  }
};

}  // namespace tandem::layers
