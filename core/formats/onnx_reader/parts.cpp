// Operators that take parts of an axis.
#include <algorithm>
#include <numeric>

#include "core/base/error.h"
#include "core/formats/onnx_reader/constants.h"
#include "core/formats/onnx_reader/operators.h"

namespace tandem::onnx_operators {

Line line_of(OnnxMapper& m, const OnnxNetValue& x, size_t axis) {
  OnnxMapper::Exposed at = m.exposed(x, x.axes[axis]);
  if (at.count > 1) {  // several axes of the tensor are one of the value
    const int64_t covered = at.value.extent(axis);
    int64_t before = 1;
    for (int64_t i = 0; i < at.axis - 1; ++i) before *= at.value.net[size_t(i)];
    const int64_t after = at.value.count() / before / covered;
    std::vector<size_t> same(at.value.factors.size());
    std::iota(same.begin(), same.end(), 0);
    const NetExtents net =
        before > 1 ? NetExtents{before, covered, after} : NetExtents{covered, after, 1};
    return {m.arranged(at.value, same, net), before > 1 ? 2 : 1};
  }
  return {std::move(at.value), at.axis};
}

OnnxNetValue part_of(const Line& line, size_t axis, const std::string& top, int64_t extent) {
  OnnxNetValue part = line.value;
  part.top = top;
  part.net[size_t(line.axis) - 1] = extent;
  std::vector<size_t>& factors = part.axes[axis];
  if (factors.empty()) return part;
  // The axis has one factor, in the place of its first.
  const size_t first = *std::min_element(factors.begin(), factors.end());
  const size_t gone = factors.size() - (extent > 1 ? 1 : 0);
  const size_t end = first + factors.size();
  for (std::vector<size_t>& other : part.axes) {
    for (size_t& factor : other) factor -= factor >= end ? gone : 0;
  }
  factors.assign(extent > 1 ? 1 : 0, first);
  part.factors.erase(part.factors.begin() + int64_t(first), part.factors.begin() + int64_t(end));
  if (extent > 1) part.factors.insert(part.factors.begin() + int64_t(first), extent);
  return part;
}

namespace {

// The indices from `start` on, `count` of them.
OnnxNetValue range(OnnxMapper& m, const OnnxNode& node, const OnnxNetValue& x, size_t axis,
                   int64_t start, int64_t count) {
  const int64_t extent = x.extent(axis);
  if (count < 1) throw error("nothing is left of axis {}", axis);
  if (count == extent) return x;
  const Line line = line_of(m, x, axis);
  std::vector<int64_t> points;
  size_t part = 0;
  constexpr int64_t few = 8;
  if (count == 1 && extent <= few) {  // all of them may be wanted
    for (int64_t i = 1; i < extent; ++i) points.push_back(i);
    part = size_t(start);
  } else {
    if (start > 0) points.push_back(start);
    if (start + count < extent) points.push_back(start + count);
    part = start > 0 ? 1 : 0;
  }
  const std::string top = m.cut(line.value.top, line.axis, points, m.layer_name(node)).at(part);
  return part_of(line, axis, top, count);
}

}  // namespace

// Every `step`th index from `start` on; backwards where the step is negative.
OnnxNetValue taken(OnnxMapper& m, const OnnxNode& node, OnnxNetValue x, size_t axis,
                   const OnnxRange& wanted) {
  if (wanted.step == 1 || wanted.count <= 1) {
    return range(m, node, x, axis, wanted.start, wanted.count);
  }
  const int64_t extent = x.extent(axis), all = wanted.count * wanted.step;
  const int64_t begin = std::min(wanted.start, extent - all), offset = wanted.start - begin;
  if (wanted.step < 1 || begin < 0 || offset >= wanted.step) {
    const Line line = line_of(m, x, axis);
    Message& layer = m.add(m.layer_name(node), "Slice", {line.value.top});
    add_fields(layer, "slice_param",
               {{"axis", whole(line.axis)},
                {"start", whole(wanted.start)},
                {"step", whole(wanted.step)},
                {"count", whole(wanted.count)}});
    return part_of(line, axis, layer.find("top")->text, wanted.count);
  }
  // One of each `step` indices, which are an axis of their own: all of these are cut at once.
  x = range(m, node, x, axis, begin, all);
  std::vector<int64_t> divided = x.extents();
  divided[axis] = wanted.count;
  divided.insert(divided.begin() + int64_t(axis) + 1, wanted.step);
  if (!x.reshape(divided)) {
    x = m.plain(x, {x.count(), 1, 1});
    x.set_plain(divided);
  }
  x = range(m, node, x, axis + 1, offset, 1);
  x.axes.erase(x.axes.begin() + int64_t(axis) + 1);
  return x;
}

OnnxNetValue value_of_constant(OnnxMapper& m, const OnnxNode& node, size_t input,
                               const OnnxNetValue& like) {
  const OnnxConstant constant = m.required(node, input);
  const int64_t count = int64_t(constant->count());
  if (count < 1) throw error("a constant without values");
  OnnxNetValue one = like;
  one.set_plain({like.count()});
  if (count < one.count()) one = range(m, node, one, 0, 0, count);
  if (count > one.count()) {
    const int64_t times = (count + one.count() - 1) / one.count();
    one.set_plain({1, one.count()});
    one = m.repeated(one, {times, one.count()});
    one.set_plain({one.count()});
    one = range(m, node, one, 0, 0, count);
  }
  one = m.plain(one, {count, 1, 1});
  apply(m, node, one, "Power", "power_param", {{"scale", "0"}});
  Message& layer = m.add(m.layer_name(node, {input}), "Bias", {one.top});
  add_fields(layer, "bias_param", {{"axis", "1"}, {"num_axes", "1"}});
  m.weight(layer, "bias", {count}, floats_of(*constant), constant.get(), 0);
  one.top = layer.find("top")->text;
  one.set_plain(constant->shape);
  return one;
}

namespace {

void slice(OnnxMapper& m, const OnnxNode& node) {
  OnnxNetValue x = m.value(node, 0);
  const std::vector<int64_t> starts = integers_of(*m.required(node, 1));
  const std::vector<int64_t> ends = integers_of(*m.required(node, 2));
  std::vector<int64_t> axes = m.integers(node, 3), steps = m.integers(node, 4);
  if (axes.empty()) {
    axes.resize(starts.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (steps.empty()) steps.assign(starts.size(), 1);
  if (ends.size() != starts.size() || axes.size() != starts.size() ||
      steps.size() != starts.size()) {
    throw error("its starts, ends, axes and steps are of different numbers");
  }
  for (size_t i = 0; i < starts.size(); ++i) {
    const size_t axis = axis_of(axes[i], x.axes.size());
    x = taken(m, node, x, axis, range_of(starts[i], ends[i], steps[i], x.extent(axis)));
  }
  m.set(node, std::move(x));
}

// The indices as ranges of one step each.
std::vector<OnnxRange> ranges_of(const std::vector<int64_t>& indices) {
  std::vector<OnnxRange> ranges;
  for (const int64_t index : indices) {
    if (!ranges.empty()) {
      OnnxRange& last = ranges.back();
      if (last.count == 1 && index != last.start) last.step = index - last.start;
      if (index == last.start + last.count * last.step && index != last.start) {
        ++last.count;
        continue;
      }
    }
    ranges.push_back({index, 1, 1});
  }
  return ranges;
}

// These indices of an axis: in ranges, or by a product with a matrix of zeros and ones.
OnnxNetValue picked(OnnxMapper& m, const OnnxNode& node, OnnxNetValue x, size_t axis,
                    std::vector<int64_t> wanted) {
  const int64_t extent = x.extent(axis), count = int64_t(wanted.size());
  if (wanted.empty()) throw error("it takes no index");
  for (int64_t& index : wanted) {
    const int64_t written = index;
    if (index < 0) index += extent;
    if (index < 0 || index >= extent) throw error("index {} is outside {}", written, extent);
  }
  constexpr size_t most_ranges = 64;
  constexpr int64_t most_products = int64_t{1} << 24;
  const std::vector<OnnxRange> ranges = ranges_of(wanted);
  if (ranges.size() <= most_ranges) {
    std::vector<OnnxNetValue> parts;
    for (const OnnxRange& part : ranges) parts.push_back(taken(m, node, x, axis, part));
    return parts.size() == 1 ? parts[0] : joined(m, node, std::move(parts), axis);
  }
  if (count_of({count, extent}, most_products) < 0) {
    throw error("its {} indices of {} are {} ranges; {} are read", count, extent, ranges.size(),
                most_ranges);
  }
  OnnxTensor matrix;
  matrix.shape = {count, extent};
  matrix.floats.resize(size_t(count * extent), 0);
  for (size_t i = 0; i < wanted.size(); ++i) {
    matrix.floats[i * size_t(extent) + size_t(wanted[i])] = 1;
  }
  std::swap(x.axes[axis], x.axes.back());
  x = product(m, node, std::move(x), matrix, true, 1, {});
  std::swap(x.axes[axis], x.axes.back());
  return x;
}

void gather(OnnxMapper& m, const OnnxNode& node) {
  OnnxNetValue x = m.value(node, 0);
  const OnnxConstant indices = m.required(node, 1);
  const size_t axis = axis_of(node.integer("axis", 0), x.axes.size());
  x = picked(m, node, std::move(x), axis, integers_of(*indices));
  if (indices->shape.empty()) {
    x.axes.erase(x.axes.begin() + int64_t(axis));
    return m.set(node, std::move(x));
  }
  std::vector<int64_t> extents = x.extents();
  extents.erase(extents.begin() + int64_t(axis));
  extents.insert(extents.begin() + int64_t(axis), indices->shape.begin(), indices->shape.end());
  set_reshaped(m, node, std::move(x), extents);
}

// Indices of the first axes: as those of one axis.
void gather_slices(OnnxMapper& m, const OnnxNode& node) {
  OnnxNetValue x = m.value(node, 0);
  const OnnxConstant indices = m.required(node, 1);
  const size_t depth = indices->shape.empty() ? 0 : size_t(indices->shape.back());
  if (depth == 0 || depth > x.axes.size() || node.integer("batch_dims", 0) != 0) {
    throw error("indices of {} axes and batch_dims {}", depth, node.integer("batch_dims", 0));
  }
  std::vector<int64_t> wanted(indices->count() / depth, 0);
  for (size_t i = 0; i < indices->count(); ++i) {
    const auto written = static_cast<int64_t>(indices->at(i));
    const int64_t extent = x.extent(i % depth), index = written < 0 ? written + extent : written;
    if (index < 0 || index >= extent) throw error("index {} is outside {}", written, extent);
    wanted[i / depth] = wanted[i / depth] * extent + index;
  }
  std::vector<size_t> first(depth);
  std::iota(first.begin(), first.end(), 0);
  x.axes[depth - 1] = x.factors_of(first);
  x.axes.erase(x.axes.begin(), x.axes.begin() + int64_t(depth) - 1);
  x = picked(m, node, std::move(x), 0, std::move(wanted));
  std::vector<int64_t> extents = x.extents();
  extents.erase(extents.begin());
  extents.insert(extents.begin(), indices->shape.begin(), indices->shape.end() - 1);
  set_reshaped(m, node, std::move(x), extents);
}

void split(OnnxMapper& m, const OnnxNode& node) {
  const OnnxNetValue x = m.value(node, 0);
  const size_t axis = axis_of(node.integer("axis", 0), x.axes.size());
  const int64_t extent = x.extent(axis), parts = int64_t(node.outputs.size());
  std::vector<int64_t> sizes = m.integers(node, 1);
  if (sizes.empty()) {
    const int64_t each = (extent + parts - 1) / parts;
    for (int64_t i = 0; i < parts; ++i) sizes.push_back(std::min(each, extent - i * each));
  }
  int64_t sum = 0;
  std::vector<int64_t> points;
  for (const int64_t size : sizes) {
    if (size < 1 || size > extent) throw error("a part of {} of {}", size, extent);
    if (sum > 0) points.push_back(sum);
    sum += size;
  }
  if (sum != extent || int64_t(sizes.size()) != parts) {
    throw error("parts of {} are not the axis of {}", fmt::join(sizes, ", "), extent);
  }
  if (parts == 1) return m.set(node, x);
  const Line line = line_of(m, x, axis);
  const auto tops = m.cut(line.value.top, line.axis, points, m.layer_name(node));
  for (size_t i = 0; i < tops.size(); ++i) {
    m.set(node, part_of(line, axis, tops[i], sizes[i]), i);
  }
}

}  // namespace

const std::vector<NamedOnnxOperator>& parts() {
  static const std::vector<NamedOnnxOperator> table{
      {"", "Gather", gather},
      {"", "GatherND", gather_slices},
      {"", "Slice", slice},
      {"", "Split", split},
  };
  return table;
}

}  // namespace tandem::onnx_operators
