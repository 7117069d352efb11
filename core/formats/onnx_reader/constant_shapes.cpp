// Constants of other shapes, and shapes as constants.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/formats/onnx_reader/constant_operators.h"

namespace tandem {

using onnx_constants::make, onnx_constants::max_folded_values;

OnnxConstant shape_constant(const OnnxNode& node, const std::vector<int64_t>& extents) {
  const auto rank = static_cast<int64_t>(extents.size());
  const OnnxRange range = range_of(node.integer("start", 0), node.integer("end", rank), 1, rank);
  auto result = make({range.count}, true);
  std::copy_n(extents.begin() + range.start, range.count, result->integers.begin());
  return result;
}

std::vector<int64_t> reshaped(const OnnxNode& node, const std::vector<int64_t>& from,
                              std::vector<int64_t> to) {
  const std::string written = fmt::format("{}", fmt::join(to, "x"));
  const int64_t all = count_of(from, max_folded_values);
  int64_t* free = nullptr;
  for (size_t i = 0; i < to.size(); ++i) {
    if (to[i] == 0 && i < from.size() && node.integer("allowzero", 0) == 0) to[i] = from[i];
    if (to[i] == -1 && free == nullptr) free = &to[i];
  }
  if (free != nullptr) {
    *free = 1;
    const int64_t others = count_of(to, max_folded_values);
    if (others > 0) *free = all / others;
  }
  if (all >= 0 && count_of(to, max_folded_values) == all) return to;
  throw error(
      "it makes {} of {}, which has another number of values (a file for a fixed batch "
      "above 1 must be exported with batch 1 or any batch)",
      written, fmt::join(from, "x"));
}

size_t axis_of(int64_t axis, size_t rank) {
  const auto axes = static_cast<int64_t>(rank);
  if (axis >= -axes && axis < axes) return size_t(axis < 0 ? axis + axes : axis);
  throw error("axis {} does not exist, its input has {} axes", axis, rank);
}

std::vector<size_t> unsqueezed_axes(const std::vector<int64_t>& axes, size_t rank) {
  std::vector<size_t> sorted;
  sorted.reserve(axes.size());
  for (const int64_t axis : axes) sorted.push_back(axis_of(axis, rank + axes.size()));
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

namespace onnx_constants {
namespace {

OnnxConstant transpose(const OnnxNode& node, const OnnxTensor& x) {
  Extents order = node.integers("perm");
  if (order.empty()) {
    for (size_t i = x.shape.size(); i-- > 0;) order.push_back(int64_t(i));
  }
  if (order.size() != x.shape.size()) throw error("perm does not fit");
  const Extents own = strides_of(x.shape);
  (void)axes_of(order, own.size());
  Extents shape, strides;
  for (const int64_t written : order) {
    const size_t axis = axis_of(written, own.size());
    shape.push_back(x.shape[axis]);
    strides.push_back(own[axis]);
  }
  return strided(x, shape, strides);
}

OnnxConstant tiled(const OnnxNode&, const Inputs& inputs) {
  const OnnxTensor& x = input(inputs, 0);
  const Extents times = integers_of(input(inputs, 1));
  if (times.size() != x.shape.size()) throw error("repeats do not fit");
  // Each axis is one of repeats, which moves nothing, and its own.
  const Extents own = strides_of(x.shape);
  Extents shape, divided, strides;
  for (size_t axis = 0; axis < times.size(); ++axis) {
    divided.insert(divided.end(), {times[axis], x.shape[axis]});
    strides.insert(strides.end(), {0, own[axis]});
    if (count_of({times[axis], x.shape[axis]}, max_folded_values) < 0) {
      throw error("it repeats {} times", times[axis]);
    }
    shape.push_back(times[axis] * x.shape[axis]);
  }
  return with_shape(*strided(x, divided, strides), shape);
}

OnnxConstant filled(const OnnxNode& node, const Extents& shape) {
  const auto found = node.attributes.find("value");
  const OnnxConstant* value =
      found == node.attributes.end() ? nullptr : std::get_if<OnnxConstant>(&found->second);
  const bool is_integer = value != nullptr && (*value)->is_integer;
  auto result = make(shape, is_integer);
  const double fill = value != nullptr && (*value)->count() == 1 ? (*value)->at(0) : 0;
  for (size_t i = 0; i < result->count(); ++i) set(*result, i, fill);
  return result;
}

OnnxConstant counted(const OnnxNode&, const Inputs& inputs) {
  for (size_t i = 0; i < 3; ++i) {
    if (input(inputs, i).count() != 1) throw error("input {} is no number", i);
  }
  const double start = input(inputs, 0).at(0), limit = input(inputs, 1).at(0);
  const double delta = input(inputs, 2).at(0);
  const double count = delta == 0 ? -1 : std::ceil((limit - start) / delta);
  if (!(count >= 0 && count <= double(max_folded_values))) throw error("it has no end");
  auto result = make({static_cast<int64_t>(count)}, inputs[0]->is_integer);
  for (size_t i = 0; i < result->count(); ++i) set(*result, i, start + double(i) * delta);
  return result;
}

// A matrix: the axes before `axis`, and the others.
OnnxConstant flattened(const OnnxNode& node, const Inputs& inputs) {
  const OnnxTensor& x = input(inputs, 0);
  const int64_t written = node.integer("axis", 1), rank = int64_t(x.shape.size());
  const int64_t axis = written < 0 ? written + rank : written;
  if (axis < 0 || axis > rank) throw error("axis {} does not exist", written);
  const auto middle = x.shape.begin() + axis;
  return with_shape(x, {count_of({x.shape.begin(), middle}, max_folded_values),
                        count_of({middle, x.shape.end()}, max_folded_values)});
}

// Ones on a diagonal of a matrix of these extents, `k` places to the right of the main one.
OnnxConstant identity(const OnnxNode& node, const Inputs& inputs) {
  const OnnxTensor& x = input(inputs, 0);
  if (x.shape.size() != 2) throw error("its input is no matrix");
  const int64_t type = node.integer("dtype", x.is_integer ? 7 : 1), k = node.integer("k", 0);
  const bool is_float = type == 1 || type == 10 || type == 11 || type == 16;
  auto result = make(x.shape, !is_float);
  for (int64_t row = 0; row < x.shape[0]; ++row) {
    if (k < -row || k >= x.shape[1] - row) continue;
    set(*result, size_t(row * x.shape[1] + row + k), 1);
  }
  return result;
}

// A new axis, with one value at each index that is named and another at the others.
OnnxConstant one_hot(const OnnxNode& node, const Inputs& inputs) {
  const OnnxTensor &indices = input(inputs, 0), &values = input(inputs, 2);
  if (input(inputs, 1).count() != 1 || values.count() != 2) {
    throw error("its inputs do not fit each other");
  }
  const auto depth = static_cast<int64_t>(inputs[1]->at(0));
  const size_t rank = indices.shape.size();
  if (axis_of(node.integer("axis", -1), rank + 1) != rank) return nullptr;
  Extents shape = indices.shape;
  shape.push_back(depth);
  auto result = make(shape, values.is_integer);
  for (size_t i = 0; i < result->count(); ++i) {
    const auto written = static_cast<int64_t>(indices.at(i / size_t(depth)));
    const int64_t index = written < 0 ? written + depth : written;
    copy(values, int64_t(i) % depth == index ? 1 : 0, *result, i);
  }
  return result;
}

OnnxConstant size_constant(const Extents& shape) {
  auto result = make({}, true);
  result->integers = {count_of(shape, std::numeric_limits<int64_t>::max())};
  return result;
}

OnnxConstant squeezed(const OnnxNode& n, const Inputs& in) {
  const OnnxTensor& x = input(in, 0);
  Extents shape = x.shape;
  if (!has(in, 1)) {
    std::erase(shape, 1);
    return with_shape(x, shape);
  }
  const std::vector<size_t> axes = axes_of(integers_of(*in[1]), shape.size());
  for (size_t i = axes.size(); i-- > 0;) shape.erase(shape.begin() + int64_t(axes[i]));
  return with_shape(x, reshaped(n, x.shape, shape));
}

OnnxConstant unsqueezed(const OnnxNode&, const Inputs& in) {
  const OnnxTensor& x = input(in, 0);
  Extents shape = x.shape;
  for (const size_t axis : unsqueezed_axes(integers_of(input(in, 1)), shape.size())) {
    shape.insert(shape.begin() + int64_t(axis), 1);
  }
  return with_shape(x, shape);
}

}  // namespace

const std::vector<NamedEvaluation>& shapes() {
  static const std::vector<NamedEvaluation> table{
      {"ConstantOfShape",
       [](const OnnxNode& n, const Inputs& in) { return filled(n, integers_of(input(in, 0))); }},
      {"Expand",
       [](const OnnxNode&, const Inputs& in) {
         const OnnxTensor& x = input(in, 0);
         return spread(x, broadcast(x.shape, integers_of(input(in, 1))));
       }},
      {"EyeLike", identity},
      {"Flatten", flattened},
      {"OneHot", one_hot},
      {"Range", counted},
      {"Reshape",
       [](const OnnxNode& n, const Inputs& in) {
         const OnnxTensor& x = input(in, 0);
         return with_shape(x, reshaped(n, x.shape, integers_of(input(in, 1))));
       }},
      {"Shape",
       [](const OnnxNode& n, const Inputs& in) { return shape_constant(n, input(in, 0).shape); }},
      {"Size", [](const OnnxNode&, const Inputs& in) { return size_constant(input(in, 0).shape); }},
      {"Squeeze", squeezed},
      {"Tile", tiled},
      {"Transpose", [](const OnnxNode& n, const Inputs& in) { return transpose(n, input(in, 0)); }},
      {"Unsqueeze", unsqueezed},
  };
  return table;
}

}  // namespace onnx_constants
}  // namespace tandem
