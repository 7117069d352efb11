// ContrastiveLoss of pairs of feature vectors a and b at distance d, and a flag whether they are
// similar. It is half the mean over the samples of d^2 for similar pairs, and of max(0, margin -
// d)^2 for the others, or max(0, margin - d^2) with legacy_version. R. Hadsell, S. Chopra, Y.
// LeCun, 2006.
#pragma once

#include <vector>

#include "plugins/sdk.h"

namespace tandem::layers {

struct ContrastiveLoss : sdk::LayerType {
  const char* name() const override { return "ContrastiveLoss"; }
  const char* help() const override { return "pulls similar pairs together, pushes others apart"; }
  sdk::Inputs inputs() const override {
    return {sdk::Input("data"), sdk::Input("other"), sdk::Input("alike")};
  }
  std::vector<sdk::Parameter> parameters() const override {
    const char* block = "contrastive_loss_param";
    return {sdk::number(block, "margin")
                .by_default("1")
                .range(0, 1e30)
                .help("distance beyond which dissimilar pairs have no loss"),
            sdk::boolean(block, "legacy_version")
                .by_default("false")
                .help("margin - d^2 instead of (margin - d)^2")};
  }
  uint64_t traits() const override { return TANDEM_LOSS | TANDEM_BACKWARD_READS_INPUTS; }
  std::vector<sdk::Shape> shapes(const sdk::Query& query) const override {
    const sdk::Shape &a = query.input(0), &b = query.input(1), &alike = query.input(2);
    if (!sdk::equal(a, b)) {
      throw sdk::invalid("compares features of one shape, but has ", sdk::text_of(a), " and ",
                         sdk::text_of(b));
    }
    if (alike.n != a.n || sdk::count(alike) != a.n) {
      throw sdk::invalid("needs one label per row (1: similar, 0: not), but has labels ",
                         sdk::text_of(alike), " for ", a.n, " rows");
    }
    return {{1, 1, 1, 1}};
  }
};

}  // namespace tandem::layers
