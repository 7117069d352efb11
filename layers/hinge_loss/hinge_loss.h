// HingeLoss: one against all. The mean over the samples of the sum over the classes of max(0, 1 -
// s) (norm L1) or its square (L2), where s is the score of the true class, or the negative score of
// another class.
#pragma once

#include <vector>

#include "layers/common/rows.h"
#include "plugins/sdk.h"

namespace tandem::layers {

struct HingeLoss : sdk::LayerType {
  const char* name() const override { return "HingeLoss"; }
  const char* help() const override { return "one-against-all hinge of scores and a label"; }
  sdk::Inputs inputs() const override {
    return {sdk::Input("scores"), sdk::Input("label").label()};
  }
  std::vector<sdk::Parameter> parameters() const override {
    return {sdk::word("hinge_loss_param", "norm")
                .by_default("L1")
                .one_of("L1|L2")
                .help("the margin's violation, or its square")};
  }
  uint64_t traits() const override { return TANDEM_LOSS | TANDEM_BACKWARD_READS_INPUTS; }
  std::vector<sdk::Shape> shapes(const sdk::Query& query) const override {
    (void)require_labels(query, 1);
    return {{1, 1, 1, 1}};
  }
};

}  // namespace tandem::layers
