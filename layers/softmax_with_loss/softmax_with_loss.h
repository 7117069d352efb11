// SoftmaxWithLoss: the sum over rows of -log softmax(scores)[label], divided by the normaliser that
// the host provides; a second output, if named, has the probabilities. Rows labelled below zero or
// with ignore_label add nothing and have no gradient.
#pragma once

#include <vector>

#include "layers/rows.h"
#include "plugins/sdk.h"

namespace tandem::layers {

struct SoftmaxWithLoss : sdk::LayerType {
  const char* name() const override { return "SoftmaxWithLoss"; }
  const char* help() const override { return "cross entropy of softmax scores and a label"; }
  sdk::Arity inputs() const override { return {2, 2}; }
  sdk::Arity outputs() const override { return {1, 2}; }

  std::vector<sdk::Parameter> parameters() const override {
    return {
        sdk::integer("loss_param", "ignore_label").help("rows with this label do not count"),
        sdk::boolean("loss_param", "normalize").help("older form of normalization"),
        sdk::word("loss_param", "normalization")
            .by_default("VALID")
            .one_of("FULL|VALID|BATCH_SIZE|NONE")
            .help("what the sum is divided by; the host provides it"),
        sdk::integer("softmax_param", "axis").by_default("1").range(1, 1).help("the channel axis"),
        sdk::word("softmax_param", "engine")
            .by_default("DEFAULT")
            .one_of("DEFAULT|CAFFE|CUDNN")
            .help("ignored: the device decides"),
    };
  }
  uint64_t traits() const override {
    return TANDEM_LOSS | TANDEM_SECOND_INPUT_IS_LABEL | TANDEM_BACKWARD_READS_INPUTS;
  }

  std::vector<sdk::Shape> shapes(const sdk::Query& query) const override {
    demand_rows(query.input(0), query.input(1));
    std::vector<sdk::Shape> result{{1, 1, 1, 1}};
    if (query.output_count() == 2) result.push_back(query.input(0));
    return result;
  }

  tandem_layer_cost cost(const sdk::Query& query) const override {
    const auto elements = static_cast<double>(sdk::count(query.input(0)));
    return make_cost(12 * elements, 2 * elements, 0, 8 * elements, 8 * elements, 0);
  }
};

}  // namespace tandem::layers
