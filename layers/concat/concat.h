// Concat: joins its inputs along one of Caffe's axes. All other extents must agree. It only moves
// memory; the gradient of each input is its part of the output's gradient.
#pragma once

#include <vector>

#include "layers/common/axes.h"

namespace tandem::layers {

inline size_t concat_axis(const sdk::Attributes& attributes, const sdk::Shape& input) {
  return sample_axis(renamed_axis(attributes, "axis", "concat_dim"), input);
}

struct Concat : sdk::LayerType {
  const char* name() const override { return "Concat"; }
  const char* help() const override { return "joins its inputs along one axis"; }
  std::vector<sdk::Parameter> parameters() const override {
    const char* block = "concat_param";
    return {
        sdk::integer(block, "axis").by_default("1").range(-4, 3).help("the axis; 1: channels"),
        sdk::integer(block, "concat_dim").by_default("1").range(0, 3).help("former name of axis"),
    };
  }
  sdk::Inputs inputs() const override { return {sdk::Input("data").repeated()}; }
  uint64_t traits() const override { return TANDEM_PER_SAMPLE | TANDEM_SAVES_NOTHING; }

  std::vector<sdk::Shape> shapes(const sdk::Query& query) const override {
    const size_t axis = concat_axis(query.attributes, query.input(0));
    Extents output = extents_of(query.input(0));
    for (size_t i = 1; i < query.input_count(); ++i) {
      const Extents input = extents_of(query.input(i));
      for (size_t k = 0; k < input.size(); ++k) {
        if (k == axis || input[k] == output[k]) continue;
        throw sdk::invalid("input ", i, " is ", sdk::text_of(query.input(i)), ", but input 0 ",
                           sdk::text_of(query.input(0)), ": they may differ in axis ", axis,
                           " only");
      }
      output[axis] += input[axis];
    }
    return {shape_of(output)};
  }

  tandem_layer_cost cost(const sdk::Query& query) const override {
    double bytes = 0;
    for (size_t i = 0; i < query.input_count(); ++i) {
      bytes += 8 * static_cast<double>(sdk::count(query.input(i)));
    }
    return make_cost(0, 0, 0, bytes, bytes, 0);
  }
};

}  // namespace tandem::layers
