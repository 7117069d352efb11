// Accuracy: the fraction of labels whose class is among the top_k highest scores. A tie counts
// against the true class, and so does a NaN score. An optional second output holds the accuracy of
// each class over the whole batch; it is 0 for a class that does not occur.
#pragma once

#include <vector>

#include "layers/common/rows.h"
#include "plugins/sdk.h"

namespace tandem::layers {

struct Accuracy : sdk::LayerType {
  const char* name() const override { return "Accuracy"; }
  const char* help() const override {
    return "fraction of labels whose class is among the top_k scores";
  }
  sdk::Inputs inputs() const override {
    return {sdk::Input("scores"), sdk::Input("label").label()};
  }
  sdk::Arity outputs() const override { return {1, 2}; }

  std::vector<sdk::Parameter> parameters() const override {
    const char* block = "accuracy_param";
    return {
        sdk::integer(block, "top_k")
            .by_default("1")
            .range(1, 1e9)
            .help("how many of the highest scores count as a hit"),
        axis_parameter(block),
        sdk::integer(block, "ignore_label").help("elements with this label do not count"),
    };
  }
  uint64_t traits() const override { return TANDEM_METRIC | TANDEM_BATCH_STATISTICS; }

  std::vector<sdk::Shape> shapes(const sdk::Query& query) const override {
    const ScoreShape shape = require_labels(query, query.attributes.integer("axis"));
    const int64_t top = query.attributes.integer("top_k");
    if (top > shape.classes) {
      throw sdk::invalid("top_k ", top, " exceeds the ", shape.classes, " classes");
    }
    std::vector<sdk::Shape> result{{1, 1, 1, 1}};
    if (query.output_count() == 2) result.push_back({shape.classes, 1, 1, 1});
    return result;
  }

  // The number of labels that count; then that of each class, and how many of those are right.
  sdk::Statistics statistics(const sdk::Query& query) const override {
    const ScoreShape shape(query.input(0), query.attributes.integer("axis"));
    return {statistics(query.attributes, query.output_count(), shape), 0};
  }
  static int64_t statistics(const sdk::Attributes& attributes, size_t outputs,
                            const ScoreShape& shape) {
    if (outputs == 2) return 1 + 2 * shape.classes;
    return attributes.is_set("ignore_label") ? 1 : 0;
  }

  tandem_layer_cost cost(const sdk::Query& query) const override {
    const auto elements = static_cast<double>(sdk::count(query.input(0)));
    return make_cost(elements, 0, 0, 4 * elements, 0, 0);
  }
};

}  // namespace tandem::layers
