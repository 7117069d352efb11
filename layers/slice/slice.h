// Slice: cuts its input along one of Caffe's axes: at the indices of slice_point, or into equal
// parts. An output without a gradient counts as one with gradient zero.
#pragma once

#include <vector>

#include "layers/common/axes.h"

namespace tandem::layers {

inline size_t slice_axis(const sdk::Attributes& attributes, const sdk::Shape& input) {
  return sample_axis(renamed_axis(attributes, "axis", "slice_dim"), input);
}

// The first index of each output on the axis, and the end of the last one.
inline std::vector<int64_t> slice_bounds(const sdk::Attributes& attributes, int64_t extent,
                                         size_t outputs) {
  const auto parts = static_cast<int64_t>(outputs);
  std::vector<int64_t> bounds{0};
  for (const int64_t point : attributes.integers("slice_point")) bounds.push_back(point);
  if (bounds.size() == 1) {
    if (extent % parts != 0) {
      throw sdk::invalid("an extent of ", extent, " cannot be divided into ", parts,
                         " equal parts: write slice_point");
    }
    for (int64_t i = 1; i < parts; ++i) bounds.push_back(i * (extent / parts));
  } else if (bounds.size() != outputs) {
    throw sdk::invalid(bounds.size() - 1, " slice_point make ", bounds.size(), " parts, but ",
                       parts, " outputs are named");
  }
  bounds.push_back(extent);
  for (size_t i = 1; i < bounds.size(); ++i) {
    if (bounds[i] > bounds[i - 1]) continue;
    throw sdk::invalid("slice_point must increase, from above 0 to below the extent ", extent,
                       ", but part ", i - 1, " would go from ", bounds[i - 1], " to ", bounds[i]);
  }
  return bounds;
}

struct Slice : sdk::LayerType {
  const char* name() const override { return "Slice"; }
  const char* help() const override { return "cuts its input along one axis"; }
  std::vector<sdk::Parameter> parameters() const override {
    const char* block = "slice_param";
    return {
        sdk::integer(block, "axis").by_default("1").range(-4, 3).help("the axis; 1: channels"),
        sdk::integer(block, "slice_dim").by_default("1").range(0, 3).help("former name of axis"),
        sdk::integers(block, "slice_point")
            .range(1, 1e9)
            .help("first index of the second and later parts; default: equal parts"),
    };
  }
  sdk::Arity outputs() const override { return {1, -1}; }
  uint64_t traits() const override { return TANDEM_PER_SAMPLE | TANDEM_SAVES_NOTHING; }

  std::vector<sdk::Shape> shapes(const sdk::Query& query) const override {
    const size_t axis = slice_axis(query.attributes, query.input(0));
    Extents extents = extents_of(query.input(0));
    const std::vector<int64_t> bounds =
        slice_bounds(query.attributes, extents[axis], query.output_count());
    std::vector<sdk::Shape> outputs;
    for (size_t i = 0; i < query.output_count(); ++i) {
      extents[axis] = bounds[i + 1] - bounds[i];
      outputs.push_back(shape_of(extents));
    }
    return outputs;
  }

  tandem_layer_cost cost(const sdk::Query& query) const override {
    const double bytes = 8 * static_cast<double>(sdk::count(query.input(0)));
    return make_cost(0, 0, 0, bytes, bytes, 0);
  }
};

}  // namespace tandem::layers
