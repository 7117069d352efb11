// Accuracy: rows whose true class is among the top_k highest scores, divided by the normaliser that
// the host provides. A tie counts against the true class, and so does a score that is not a number.
#pragma once

#include <vector>

#include "layers/rows.h"
#include "plugins/sdk.h"

namespace tandem::layers {

struct Accuracy : sdk::LayerType {
  const char* name() const override { return "Accuracy"; }
  const char* help() const override {
    return "share of rows whose class is among the top_k scores";
  }
  sdk::Arity inputs() const override { return {2, 2}; }

  std::vector<sdk::Parameter> parameters() const override {
    const char* block = "accuracy_param";
    return {
        sdk::integer(block, "top_k").by_default("1").range(1, 1e9).help("how many may be guessed"),
        sdk::integer(block, "axis").by_default("1").range(1, 1).help("the channel axis"),
        sdk::integer(block, "ignore_label").help("rows with this label do not count"),
    };
  }
  uint64_t traits() const override { return TANDEM_METRIC | TANDEM_SECOND_INPUT_IS_LABEL; }

  std::vector<sdk::Shape> shapes(const sdk::Query& query) const override {
    demand_rows(query.input(0), query.input(1));
    const int64_t top = query.attributes.integer("top_k");
    if (top > query.input(0).c) {
      throw sdk::invalid("top_k ", top, " exceeds the ", query.input(0).c, " classes");
    }
    return {{1, 1, 1, 1}};
  }

  tandem_layer_cost cost(const sdk::Query& query) const override {
    const auto elements = static_cast<double>(sdk::count(query.input(0)));
    return make_cost(elements, 0, 0, 4 * elements, 0, 0);
  }
};

}  // namespace tandem::layers
