// InnerProduct: a fully connected layer, y = W x + b, over whole rows (Caffe's axis 1). The weight
// is (outputs, C, H, W) of its input: in plain order, Caffe's matrix of outputs x (C*H*W).
#pragma once

#include <vector>

#include "layers/common/product_weights.h"
#include "plugins/sdk.h"

namespace tandem::layers {

struct InnerProduct : sdk::LayerType {
  const char* name() const override { return "InnerProduct"; }
  const char* help() const override { return "num_output weighted sums of the whole input"; }
  uint64_t traits() const override {
    return TANDEM_PER_SAMPLE | TANDEM_BACKWARD_READS_INPUTS | TANDEM_SLICED_OUTPUTS |
           TANDEM_SLICED_INPUTS | TANDEM_SAVES_NOTHING;
  }

  std::vector<sdk::Parameter> parameters() const override {
    const char* block = "inner_product_param";
    return {
        sdk::integer(block, "num_output").required().range(1, 1e8).help("outputs"),
        sdk::boolean(block, "bias_term").by_default("true").help("add a learned bias"),
        sdk::filler(block, "weight_filler").help("initial weights"),
        sdk::filler(block, "bias_filler").help("initial bias"),
        sdk::integer(block, "axis").by_default("1").range(1, 1).help("first axis to sum over"),
        sdk::boolean(block, "transpose").by_default("false").help("not supported: must be false"),
    };
  }

  std::vector<sdk::Shape> shapes(const sdk::Query& query) const override {
    if (query.attributes.boolean("transpose")) {
      throw sdk::unsupported("transpose is true, but weights are stored as outputs x inputs only");
    }
    return {{query.input(0).n, query.attributes.integer("num_output"), 1, 1}};
  }

  std::vector<sdk::Weight> weights(const sdk::Query& query) const override {
    const sdk::Shape& input = query.input(0);
    const int64_t outputs = query.attributes.integer("num_output");
    return product_weights(query.attributes, {outputs, input.c, input.h, input.w},
                           input.c * input.h * input.w, outputs, outputs);
  }

  tandem_layer_cost cost(const sdk::Query& query) const override {
    const auto rows = static_cast<double>(query.input(0).n);
    const auto outputs = static_cast<double>(query.attributes.integer("num_output"));
    const double inputs = static_cast<double>(sdk::count(query.input(0))) / rows;
    const double flops = 2 * rows * inputs * outputs;
    const double bytes = 4 * (inputs * outputs + rows * (inputs + outputs));
    const double bias = query.attributes.boolean("bias_term") ? rows * outputs : 0;
    return make_cost(flops + bias, flops, flops + bias, bytes, bytes, bytes);
  }
};

}  // namespace tandem::layers
