// Slice: cuts its input along one of Caffe's axes: at the indices of slice_point, or into equal
// parts; or takes `count` of its indices from `start` on, `step` apart, backwards with a negative
// step. An output without a gradient counts as one with gradient zero.
#pragma once

#include <cstdlib>
#include <vector>

#include "layers/common/axes.h"

namespace tandem::layers {

inline size_t slice_axis(const sdk::Attributes& attributes, const sdk::Shape& input) {
  return sample_axis(renamed_axis(attributes, "axis", "slice_dim"), input);
}

struct SlicePart {
  int64_t start, step, count;
};

inline bool takes_steps(const sdk::Attributes& attributes) {
  return attributes.is_set("start") || attributes.is_set("step") || attributes.is_set("count");
}

// The indices of the only output. Throws Refusal.
inline SlicePart stepped_part(const sdk::Attributes& attributes, int64_t extent, size_t outputs) {
  const int64_t step = attributes.integer("step");
  SlicePart part{attributes.integer("start"), step, attributes.integer("count")};
  if (!attributes.is_set("start") && step < 0) part.start = extent - 1;
  if (outputs != 1 || !attributes.integers("slice_point").empty()) {
    throw sdk::invalid("start, step and count are for one output, without slice_point");
  }
  if (step == 0) throw sdk::invalid("step must not be 0");
  const int64_t left = step > 0 ? extent - 1 - part.start : part.start;
  if (!attributes.is_set("count")) part.count = left / std::abs(step) + 1;
  const bool fits = part.start < extent && (part.count - 1) <= left / std::abs(step);
  if (fits) return part;
  throw sdk::invalid("start ", part.start, ", step ", step, " and count ", part.count,
                     " lead outside the extent ", extent);
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

// What each output is made of. Throws Refusal.
inline std::vector<SlicePart> slice_parts(const sdk::Attributes& attributes, int64_t extent,
                                          size_t outputs) {
  if (takes_steps(attributes)) return {stepped_part(attributes, extent, outputs)};
  const std::vector<int64_t> bounds = slice_bounds(attributes, extent, outputs);
  std::vector<SlicePart> parts;
  for (size_t i = 0; i < outputs; ++i) parts.push_back({bounds[i], 1, bounds[i + 1] - bounds[i]});
  return parts;
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
        sdk::integer(block, "start")
            .by_default("0")
            .range(0, 1e9)
            .help("the first index of an output with steps; default with a negative step: the last "
                  "one"),
        sdk::integer(block, "step")
            .by_default("1")
            .range(-1e9, 1e9)
            .help("the distance of its indices"),
        sdk::integer(block, "count")
            .by_default("1")
            .range(1, 1e9)
            .help("how many it has; default: all that there are"),
    };
  }
  sdk::Arity outputs() const override { return {1, -1}; }
  uint64_t traits() const override { return TANDEM_PER_SAMPLE | TANDEM_SAVES_NOTHING; }

  std::vector<sdk::Shape> shapes(const sdk::Query& query) const override {
    const size_t axis = slice_axis(query.attributes, query.input(0));
    Extents extents = extents_of(query.input(0));
    std::vector<sdk::Shape> outputs;
    for (const SlicePart& part :
         slice_parts(query.attributes, extents[axis], query.output_count())) {
      extents[axis] = part.count;
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
