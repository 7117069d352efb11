// EuclideanLoss: half the mean over the samples of the squared distance of two inputs. Both inputs
// get gradients.
#pragma once

#include <vector>

#include "layers/common/loss.h"
#include "plugins/sdk.h"

namespace tandem::layers {

struct EuclideanLoss : sdk::LayerType {
  const char* name() const override { return "EuclideanLoss"; }
  const char* help() const override { return "half the squared distance, mean over the samples"; }
  sdk::Inputs inputs() const override { return {sdk::Input("data"), sdk::Input("target")}; }
  uint64_t traits() const override { return TANDEM_LOSS | TANDEM_BACKWARD_READS_INPUTS; }
  std::vector<sdk::Shape> shapes(const sdk::Query& query) const override {
    require_pairs(query.input(0), query.input(1), "value");
    return {{1, 1, 1, 1}};
  }
};

}  // namespace tandem::layers
