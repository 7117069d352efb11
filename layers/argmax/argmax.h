// ArgMax: the indices of the top_k largest values, largest first, as Caffe defines it. It works on
// the whole row (outputs N x 1 x top_k, or N x 2 x top_k with the values after the indices), or on
// one axis (its extent becomes top_k; indices, or values with out_max_val). Of equal values the one
// with the larger index comes first, as in Caffe; NaN comes last. There is no gradient.
#pragma once

#include <vector>

#include "layers/common/axes.h"

namespace tandem::layers {

struct ArgMax : sdk::LayerType {
  const char* name() const override { return "ArgMax"; }
  const char* help() const override { return "the indices of the largest values"; }
  std::vector<sdk::Parameter> parameters() const override {
    const char* block = "argmax_param";
    return {
        sdk::boolean(block, "out_max_val")
            .by_default("false")
            .help("also the values; with axis, the values instead of the indices"),
        sdk::integer(block, "top_k").by_default("1").range(1, 1e9).help("how many"),
        sdk::integer(block, "axis").range(-4, 3).help("the axis; default: the whole row"),
    };
  }
  sdk::Inputs inputs() const override { return {sdk::Input("data").non_differentiable()}; }
  uint64_t traits() const override { return TANDEM_PER_SAMPLE; }

  std::vector<sdk::Shape> shapes(const sdk::Query& query) const override {
    const sdk::Shape& input = query.input(0);
    const int64_t top_k = query.attributes.integer("top_k");
    Extents extents = extents_of(input);
    if (query.attributes.is_set("axis")) {
      const size_t axis = sample_axis(query.attributes.integer("axis"), input);
      require_as_many(top_k, extents[axis]);
      extents[axis] = top_k;
      return {shape_of(extents)};
    }
    require_as_many(top_k, input.c * input.h * input.w);
    return {{input.n, query.attributes.boolean("out_max_val") ? 2 : 1, top_k, 1}};
  }

 private:
  static void require_as_many(int64_t top_k, int64_t values) {
    if (top_k <= values) return;
    throw sdk::invalid("top_k ", top_k, " exceeds the ", values, " values");
  }
};

}  // namespace tandem::layers
