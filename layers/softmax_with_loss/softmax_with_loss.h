// SoftmaxWithLoss: the sum over rows and places of -log softmax(scores)[label], normalised; a
// second output, if named, has the probabilities. What is labelled below zero or with ignore_label
// adds nothing and has no gradient.
#pragma once

#include <vector>

#include "layers/loss.h"
#include "layers/rows.h"
#include "plugins/sdk.h"

namespace tandem::layers {

struct SoftmaxWithLoss : sdk::LayerType {
  const char* name() const override { return "SoftmaxWithLoss"; }
  const char* help() const override { return "cross entropy of softmax scores and a label"; }
  sdk::Arity inputs() const override { return {2, 2}; }
  sdk::Arity outputs() const override { return {1, 2}; }

  std::vector<sdk::Parameter> parameters() const override {
    std::vector<sdk::Parameter> result = loss_parameters("VALID");
    result.push_back(axis_parameter("softmax_param"));
    result.push_back(sdk::word("softmax_param", "engine")
                         .by_default("DEFAULT")
                         .one_of("DEFAULT|CAFFE|CUDNN")
                         .help("ignored: the device decides"));
    return result;
  }
  uint64_t traits() const override {
    return TANDEM_LOSS | TANDEM_SECOND_INPUT_IS_LABEL | TANDEM_BACKWARD_READS_INPUTS |
           TANDEM_BATCH_STATISTICS;
  }

  std::vector<sdk::Shape> shapes(const sdk::Query& query) const override {
    (void)demand_labels(query, query.attributes.integer("axis"));
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
