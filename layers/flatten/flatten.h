// Flatten: merges the axes from `axis` to `end_axis` into one, as Caffe does. Later axes move up
// and extents of 1 are appended. Elements keep their N,C,H,W order, so that nothing is computed.
#pragma once

#include <vector>

#include "layers/common/axes.h"

namespace tandem::layers {

struct Flatten : sdk::LayerType {
  const char* name() const override { return "Flatten"; }
  const char* help() const override { return "merges several axes into one"; }
  std::vector<sdk::Parameter> parameters() const override {
    const char* block = "flatten_param";
    return {
        sdk::integer(block, "axis").by_default("1").range(-4, 3).help("the first axis"),
        sdk::integer(block, "end_axis")
            .by_default("-1")
            .range(-4, 3)
            .help("the last axis; -1: the input's last one"),
    };
  }
  uint64_t traits() const override {
    return TANDEM_PER_SAMPLE | TANDEM_IN_PLACE | TANDEM_SAVES_NOTHING;
  }

  std::vector<sdk::Shape> shapes(const sdk::Query& query) const override {
    const sdk::Attributes& attributes = query.attributes;
    const sdk::Shape& input = query.input(0);
    const size_t first = sample_axis(attributes.integer("axis"), input);
    const int64_t written = attributes.integer("end_axis");
    // Trailing extents of 1 do not change the product.
    const size_t last = written == -1 ? 3 : sample_axis(written, input, "end_axis");
    if (last < first) {
      throw sdk::invalid("end_axis ", last, " comes before axis ", first);
    }
    const Extents from = extents_of(input);
    Extents to{1, 1, 1, 1};
    for (size_t i = 0; i < from.size(); ++i) {
      to[i <= first ? i : i <= last ? first : i - (last - first)] *= from[i];
    }
    return {shape_of(to)};
  }

  tandem_layer_cost cost(const sdk::Query& query) const override {
    const double bytes = 8 * static_cast<double>(sdk::count(query.input(0)));
    return make_cost(0, 0, 0, bytes, bytes, 0);
  }
};

}  // namespace tandem::layers
