// MultinomialLogisticLoss: the mean over the samples of -log p[label]. The input holds
// probabilities, which are at least 1e-20 in the logarithm.
#pragma once

#include <vector>

#include "layers/common/rows.h"
#include "plugins/sdk.h"

namespace tandem::layers {

struct MultinomialLogisticLoss : sdk::LayerType {
  const char* name() const override { return "MultinomialLogisticLoss"; }
  const char* help() const override { return "cross entropy of probabilities and a label"; }
  sdk::Inputs inputs() const override {
    return {sdk::Input("probabilities"), sdk::Input("label").label()};
  }
  uint64_t traits() const override { return TANDEM_LOSS | TANDEM_BACKWARD_READS_INPUTS; }
  std::vector<sdk::Shape> shapes(const sdk::Query& query) const override {
    (void)require_labels(query, 1);
    return {{1, 1, 1, 1}};
  }
};

}  // namespace tandem::layers
