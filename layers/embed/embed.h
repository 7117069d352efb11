// Embed: a learned vector of num_output values for each of input_dim indices, as in Caffe. The
// input holds whole numbers, one per row (the output is N x num_output) or T per row as N x T (the
// output is N x T x num_output). An index below zero holds no sample: its vector is zero and is not
// trained.
#pragma once

#include <vector>

#include "layers/common/product_weights.h"
#include "plugins/sdk.h"

namespace tandem::layers {

struct Embed : sdk::LayerType {
  const char* name() const override { return "Embed"; }
  const char* help() const override { return "a learned vector for each index"; }
  std::vector<sdk::Parameter> parameters() const override {
    const char* block = "embed_param";
    return {
        sdk::integer(block, "num_output").required().range(1, 1e8).help("values in a vector"),
        sdk::integer(block, "input_dim")
            .required()
            .range(1, 16777216)
            .help("indices are 0 to input_dim - 1"),
        sdk::boolean(block, "bias_term").by_default("true").help("add a learned bias"),
        sdk::filler(block, "weight_filler").help("initial vectors"),
        sdk::filler(block, "bias_filler").help("initial bias"),
    };
  }
  sdk::Inputs inputs() const override { return {sdk::Input("index").non_differentiable()}; }
  uint64_t traits() const override { return TANDEM_PER_SAMPLE | TANDEM_BACKWARD_READS_INPUTS; }

  std::vector<sdk::Shape> shapes(const sdk::Query& query) const override {
    const sdk::Shape& input = query.input(0);
    const int64_t outputs = query.attributes.integer("num_output");
    if (input.h != 1 || input.w != 1) {
      throw sdk::unsupported(
          "needs one index per row, or a sequence N x T of them, but its input is ",
          sdk::text_of(input));
    }
    if (input.c == 1) return {{input.n, outputs, 1, 1}};
    return {{input.n, input.c, outputs, 1}};
  }

  std::vector<sdk::Weight> weights(const sdk::Query& query) const override {
    const int64_t outputs = query.attributes.integer("num_output");
    const int64_t indices = query.attributes.integer("input_dim");
    return product_weights(query.attributes, {indices, outputs, 1, 1}, outputs, indices, outputs);
  }

  tandem_layer_cost cost(const sdk::Query& query) const override {
    const auto y =
        static_cast<double>(sdk::count(query.input(0)) * query.attributes.integer("num_output"));
    const auto w = static_cast<double>(query.attributes.integer("input_dim") *
                                       query.attributes.integer("num_output"));
    return make_cost(y, 0, 2 * y, 8 * y, 0, 8 * y + 4 * w);
  }
};

}  // namespace tandem::layers
