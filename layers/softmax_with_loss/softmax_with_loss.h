// SoftmaxWithLoss: the sum over rows and positions of -log softmax(scores)[label], normalized. An
// optional second output holds the probabilities. A label below zero, or equal to ignore_label,
// adds nothing and gets no gradient. If the second input has the shape of the scores, it holds a
// target for each class instead of a label. The loss is then the sum of -target * log softmax, for
// targets t >= 0 that need not sum to 1 (a sample of several classes, or of another weight).
#pragma once

#include <vector>

#include "layers/common/engine_parameter.h"
#include "layers/common/loss.h"
#include "layers/common/rows.h"
#include "plugins/sdk.h"

namespace tandem::layers {

// With a single class, the second input is a label.
inline bool reads_targets(const sdk::Shape& scores, const sdk::Shape& second, int64_t axis) {
  const bool same =
      scores.n == second.n && scores.c == second.c && scores.h == second.h && scores.w == second.w;
  return same && ScoreShape(scores, axis).classes > 1;
}

struct SoftmaxWithLoss : sdk::LayerType {
  const char* name() const override { return "SoftmaxWithLoss"; }
  const char* help() const override { return "cross entropy of softmax scores and a label"; }
  sdk::Inputs inputs() const override {
    return {sdk::Input("scores"), sdk::Input("label").targets()};
  }
  sdk::Arity outputs() const override { return {1, 2}; }

  std::vector<sdk::Parameter> parameters() const override {
    std::vector<sdk::Parameter> result = loss_parameters("VALID");
    result.push_back(axis_parameter("softmax_param"));
    result.push_back(engine_parameter("softmax_param"));
    return result;
  }
  uint64_t traits() const override {
    return TANDEM_LOSS | TANDEM_BACKWARD_READS_INPUTS | TANDEM_BATCH_STATISTICS;
  }

  std::vector<sdk::Shape> shapes(const sdk::Query& query) const override {
    const int64_t axis = query.attributes.integer("axis");
    if (!reads_targets(query.input(0), query.input(1), axis)) {
      (void)require_labels(query, axis);
    } else if (query.attributes.is_set("ignore_label")) {
      throw sdk::invalid("has an ignore_label, but a target for each class, ",
                         sdk::text_of(query.input(1)),
                         ": use targets of 0 for positions that should not count");
    }
    std::vector<sdk::Shape> result{{1, 1, 1, 1}};
    if (query.output_count() == 2) result.push_back(query.input(0));
    return result;
  }
  sdk::Statistics statistics(const sdk::Query& query) const override {
    return {counts_labels(query.attributes) ? 1 : 0, 0};
  }

  tandem_layer_cost cost(const sdk::Query& query) const override {
    const auto elements = static_cast<double>(sdk::count(query.input(0)));
    return make_cost(12 * elements, 2 * elements, 0, 8 * elements, 8 * elements, 0);
  }
};

}  // namespace tandem::layers
