// Slice: cuts its input into its outputs along one axis, Caffe's: at the bounds of slice_point, or
// into equal parts. The gradient of an output that nobody differentiates is zero.
#pragma once

#include <vector>

#include "layers/axes.h"

namespace tandem::layers {

inline size_t slice_axis(const sdk::Attributes& attributes, const sdk::Shape& input) {
  return sample_axis(renamed_axis(attributes, "axis", "slice_dim"), input);
}

// Where the outputs begin along the axis, and where the last one ends.
inline std::vector<int64_t> slice_places(const sdk::Attributes& attributes, int64_t extent,
                                         size_t outputs) {
  const auto parts = static_cast<int64_t>(outputs);
  std::vector<int64_t> bounds{0};
  for (const int64_t point : attributes.integers("slice_point")) bounds.push_back(point);
  if (bounds.size() == 1) {
    if (extent % parts != 0) {
      throw sdk::invalid("an extent of ", extent, " does not fall into ", parts,
                         " equal parts: say where to cut with slice_point");
    }
    for (int64_t i = 1; i < parts; ++i) bounds.push_back(i * (extent / parts));
  } else if (bounds.size() != outputs) {
    throw sdk::invalid(bounds.size() - 1, " slice_point make ", bounds.size(), " parts, but ",
                       parts, " outputs are named");
  }
  bounds.push_back(extent);
  for (size_t i = 1; i < bounds.size(); ++i) {
    if (bounds[i] > bounds[i - 1]) continue;
    throw sdk::invalid("slice_point must go up, from above 0 to below the extent ", extent,
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
        sdk::integer(block, "slice_dim").by_default("1").range(0, 3).help("axis, by its old name"),
        sdk::integers(block, "slice_point")
            .range(1, 1e9)
            .help("where the second and later parts begin; none: equal parts"),
    };
  }
  sdk::Arity outputs() const override { return {1, -1}; }
  uint64_t traits() const override { return TANDEM_PER_SAMPLE | TANDEM_SAVES_NOTHING; }

  std::vector<sdk::Shape> shapes(const sdk::Query& query) const override {
    const size_t axis = slice_axis(query.attributes, query.input(0));
    Extents extents = extents_of(query.input(0));
    const std::vector<int64_t> bounds =
        slice_places(query.attributes, extents[axis], query.output_count());
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
