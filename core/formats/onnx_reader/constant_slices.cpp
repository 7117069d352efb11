// Constants joined, and parts of them.
#include <algorithm>
#include <numeric>

#include "core/base/error.h"
#include "core/formats/onnx_reader/constant_operators.h"

namespace tandem {

OnnxRange range_of(int64_t start, int64_t end, int64_t step, int64_t extent) {
  OnnxRange range;
  if (step == 0 || extent == 0) return range;
  range.step = std::clamp<int64_t>(step, -extent - 1, extent + 1);
  const bool down = range.step < 0;
  const auto place = [&](int64_t at, int64_t least) {
    if (at < 0) at = std::max<int64_t>(at, -extent - 1) + extent;
    return std::clamp<int64_t>(at, least, down ? extent - 1 : extent);
  };
  range.start = place(start, 0);
  const int64_t stop = place(end, down ? -1 : 0);
  const int64_t length = down ? range.start - stop : stop - range.start;
  const int64_t step_size = std::abs(range.step);
  range.count = std::max<int64_t>(0, (length + step_size - 1) / step_size);
  return range;
}

namespace onnx_constants {
namespace {

OnnxConstant concat(const OnnxNode& node, const Inputs& inputs) {
  const OnnxTensor& first = input(inputs, 0);
  const size_t axis = axis_of(node.integer("axis", 0), first.shape.size());
  Extents shape = first.shape;
  shape[axis] = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const OnnxTensor& part = input(inputs, i);
    Extents expected = part.shape;
    if (expected.size() != shape.size() || part.is_integer != first.is_integer) {
      throw error("its inputs do not fit each other");
    }
    shape[axis] += expected[axis];
    expected[axis] = shape[axis];
    if (expected != shape) throw error("its inputs do not fit each other");
  }
  auto result = make(shape, first.is_integer);
  const int64_t outer = count_of({shape.begin(), shape.begin() + int64_t(axis)}, max_folded_values);
  size_t k = 0;
  for (int64_t o = 0; o < outer; ++o) {
    for (const OnnxConstant& part : inputs) {
      const size_t each = part->count() / size_t(std::max<int64_t>(1, outer));
      for (size_t i = 0; i < each; ++i) copy(*part, size_t(o) * each + i, *result, k++);
    }
  }
  return result;
}

OnnxConstant gather(const OnnxNode& node, const Inputs& inputs) {
  const OnnxTensor &x = input(inputs, 0), &indices = input(inputs, 1);
  const size_t axis = axis_of(node.integer("axis", 0), x.shape.size());
  Extents shape(x.shape.begin(), x.shape.begin() + int64_t(axis));
  shape.insert(shape.end(), indices.shape.begin(), indices.shape.end());
  shape.insert(shape.end(), x.shape.begin() + int64_t(axis) + 1, x.shape.end());
  auto result = make(shape, x.is_integer);
  const int64_t inner = strides_of(x.shape)[axis], extent = x.shape[axis];
  const int64_t outer =
      count_of({x.shape.begin(), x.shape.begin() + int64_t(axis)}, max_folded_values);
  size_t k = 0;
  for (int64_t o = 0; o < outer; ++o) {
    for (size_t i = 0; i < indices.count(); ++i) {
      const auto written = static_cast<int64_t>(indices.at(i));
      const int64_t index = written < 0 ? written + extent : written;
      if (index < 0 || index >= extent) {
        throw error("index {} is outside the extent {}", written, extent);
      }
      for (int64_t e = 0; e < inner; ++e) {
        copy(x, size_t((o * extent + index) * inner + e), *result, k++);
      }
    }
  }
  return result;
}

OnnxConstant slice(const OnnxNode&, const Inputs& inputs) {
  const OnnxTensor& x = input(inputs, 0);
  const Extents starts = integers_of(input(inputs, 1));
  const Extents ends = integers_of(input(inputs, 2));
  Extents axes = has(inputs, 3) ? integers_of(*inputs[3]) : Extents(starts.size());
  if (!has(inputs, 3)) std::iota(axes.begin(), axes.end(), 0);
  const Extents steps = has(inputs, 4) ? integers_of(*inputs[4]) : Extents(starts.size(), 1);
  if (ends.size() != starts.size() || axes.size() != starts.size() ||
      steps.size() != starts.size()) {
    throw error("its starts, ends, axes and steps are of different numbers");
  }
  Extents shape = x.shape, strides = strides_of(x.shape);
  int64_t first = 0;
  (void)axes_of(axes, shape.size());
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t axis = axis_of(axes[i], shape.size());
    const OnnxRange range = range_of(starts[i], ends[i], steps[i], x.shape[axis]);
    shape[axis] = range.count;
    first += range.start * strides[axis];
    strides[axis] *= range.step;
  }
  return strided(x, shape, strides, first);
}

// Where the slice begins that row `row` of the indices names.
int64_t place_of(const OnnxTensor& x, const OnnxTensor& indices, size_t row,
                 const Extents& strides) {
  const auto depth = size_t(indices.shape.back());
  int64_t at = 0;
  for (size_t axis = 0; axis < depth; ++axis) {
    const auto written = static_cast<int64_t>(indices.at(row * depth + axis));
    const int64_t index = written < 0 ? written + x.shape[axis] : written;
    if (index < 0 || index >= x.shape[axis]) {
      throw error("index {} is outside the extent {}", written, x.shape[axis]);
    }
    at += index * strides[axis];
  }
  return at;
}

// x with slices replaced: the last axis of the indices has an index for each of the first axes.
OnnxConstant scattered(const OnnxNode& node, const Inputs& inputs) {
  const OnnxTensor &x = input(inputs, 0), &indices = input(inputs, 1), &updates = input(inputs, 2);
  const std::string reduction = node.text("reduction", "none");
  if (reduction != "none") throw error("reduction {} is not read", reduction);
  const size_t depth = indices.shape.empty() ? 0 : size_t(indices.shape.back());
  const auto rows = int64_t(depth == 0 ? 0 : indices.count() / depth);
  if (depth == 0 || depth > x.shape.size() || updates.is_integer != x.is_integer) {
    throw error("its inputs do not fit each other");
  }
  const Extents strides = strides_of(x.shape);
  const int64_t each = strides[depth - 1];
  if (int64_t(updates.count()) != rows * each) {
    throw error("its inputs do not fit each other");
  }
  auto result = std::make_shared<OnnxTensor>(x);
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t at = place_of(x, indices, size_t(row), strides);
    for (int64_t i = 0; i < each; ++i) {
      copy(updates, size_t(row * each + i), *result, size_t(at + i));
    }
  }
  return result;
}

// The slices of x that the last axis of the indices names.
OnnxConstant gathered(const OnnxNode& node, const Inputs& inputs) {
  const OnnxTensor &x = input(inputs, 0), &indices = input(inputs, 1);
  const size_t depth = indices.shape.empty() ? 0 : size_t(indices.shape.back());
  if (depth == 0 || depth > x.shape.size() || node.integer("batch_dims", 0) != 0) return nullptr;
  const Extents strides = strides_of(x.shape);
  const int64_t each = strides[depth - 1];
  Extents shape(indices.shape.begin(), indices.shape.end() - 1);
  shape.insert(shape.end(), x.shape.begin() + int64_t(depth), x.shape.end());
  auto result = make(shape, x.is_integer);
  for (size_t row = 0; row < indices.count() / depth; ++row) {
    const int64_t at = place_of(x, indices, row, strides);
    for (int64_t i = 0; i < each; ++i) {
      copy(x, size_t(at + i), *result, row * size_t(each) + size_t(i));
    }
  }
  return result;
}

}  // namespace

const std::vector<NamedEvaluation>& slices() {
  static const std::vector<NamedEvaluation> table{
      {"Concat", concat},       {"Gather", gather}, {"GatherND", gathered},
      {"ScatterND", scattered}, {"Slice", slice},
  };
  return table;
}

}  // namespace onnx_constants
}  // namespace tandem
