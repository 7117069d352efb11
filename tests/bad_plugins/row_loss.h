// A loss of one label for each row: what its type declares.
#pragma once

#include <vector>

#include "plugins/sdk.h"

namespace tandem::test {

struct RowLoss : sdk::LayerType {
  sdk::Inputs inputs() const override {
    return {sdk::Input("scores"), sdk::Input("label").label()};
  }
  uint64_t traits() const override {
    return TANDEM_LOSS | TANDEM_PER_SAMPLE | TANDEM_BACKWARD_READS_INPUTS | TANDEM_SAVES_NOTHING;
  }
  std::vector<sdk::Shape> shapes(const sdk::Query& query) const override {
    if (sdk::count(query.input(1)) != query.input(1).n) {
      throw sdk::invalid("one label for each row");
    }
    return {{1, 1, 1, 1}};
  }
};

}  // namespace tandem::test
