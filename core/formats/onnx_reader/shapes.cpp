// Operators that give values other axes, join them, and reduce axes.
#include <algorithm>
#include <numeric>

#include "core/base/error.h"
#include "core/formats/onnx_reader/constants.h"
#include "core/formats/onnx_reader/operators.h"

namespace tandem::onnx_operators {
void set_reshaped(OnnxMapper& m, const OnnxNode& node, OnnxNetValue x,
                  const std::vector<int64_t>& extents) {
  if (!x.reshape(extents)) {
    x = m.plain(x, {x.count(), 1, 1});
    x.set_plain(extents);
  }
  m.set(node, std::move(x));
}

OnnxNetValue joined(OnnxMapper& m, const OnnxNode& node, std::vector<OnnxNetValue> parts,
                    size_t axis) {
  const size_t rank = parts[0].axes.size();
  // The others follow the order of the first that has more than one index of the axis.
  const auto has_axis = [&](const OnnxNetValue& part) { return !part.axes.at(axis).empty(); };
  for (const OnnxNetValue& part : parts) {
    if (part.axes.size() != rank) throw error("its inputs have different numbers of axes");
  }
  const auto found = std::find_if(parts.begin(), parts.end(), has_axis);
  std::vector<size_t> others;
  for (size_t i = 0; i < rank; ++i) {
    if (i != axis) others.push_back(i);
  }
  OnnxNetValue leading = found == parts.end() ? parts[0] : *found;
  for (OnnxNetValue& part : parts) {
    for (const size_t other : others) {
      if (part.extent(other) != leading.extent(other)) {
        throw error("its inputs are {} and {}", fmt::join(leading.extents(), "x"),
                    fmt::join(part.extents(), "x"));
      }
    }
    if (!divide_alike(leading, part, others)) throw error("its inputs are in different orders");
  }
  const Line line = line_of(m, leading, axis);
  const std::vector<size_t> lead = line.value.factors_of(others);
  // How many of the other factors come before the axis.
  int64_t before = 1;
  for (int64_t i = 0; i + 1 < line.axis; ++i) before *= line.value.net[size_t(i)];
  const int64_t all = line.value.product(lead);
  std::vector<std::string> tops;
  int64_t sum = 0;
  for (OnnxNetValue part : parts) {
    if (!divide_alike(leading, part, others)) throw error("its inputs are in different orders");
    const std::vector<size_t> own = part.factors_of(others);
    std::vector<size_t> places(lead.size());
    std::iota(places.begin(), places.end(), 0);
    std::sort(places.begin(), places.end(), [&](size_t a, size_t b) { return lead[a] < lead[b]; });
    std::vector<size_t> order;
    int64_t passed = 1;
    bool is_placed = false;
    const auto place_axis = [&] {
      if (!is_placed && passed == before) {
        order.insert(order.end(), part.axes[axis].begin(), part.axes[axis].end());
        is_placed = true;
      }
    };
    place_axis();
    for (const size_t place : places) {
      order.push_back(own.at(place));
      passed *= part.factors[own[place]];
      place_axis();
    }
    if (!is_placed) throw error("its inputs are in different orders");
    NetExtents net = line.value.net;
    net[size_t(line.axis) - 1] = part.extent(axis);
    sum += part.extent(axis);
    tops.push_back(m.arranged(part, order, net).top);
  }
  Message& layer = m.add(m.layer_name(node), "Concat", tops);
  if (line.axis != 1) add_fields(layer, "concat_param", {{"axis", whole(line.axis)}});
  OnnxNetValue result = part_of(line, axis, layer.find("top")->text, sum);
  if (line.value.axes[axis].empty() && sum > 1) {  // the axis had one index only
    size_t first = 0;
    for (int64_t passed = 1; passed < before; ++first) passed *= result.factors.at(first);
    for (std::vector<size_t>& other : result.axes) {
      for (size_t& factor : other) factor += factor >= first ? 1 : 0;
    }
    result.factors.insert(result.factors.begin() + int64_t(first), sum);
    result.axes[axis] = {first};
  }
  if (all < 1) throw error("its inputs are empty");
  return result;
}

namespace {

// ---- other axes

void reshape(OnnxMapper& m, const OnnxNode& node) {
  const OnnxNetValue x = m.value(node, 0);
  set_reshaped(m, node, x, reshaped(node, x.extents(), integers_of(*m.required(node, 1))));
}

void flatten(OnnxMapper& m, const OnnxNode& node) {
  const OnnxNetValue x = m.value(node, 0);
  const std::vector<int64_t> extents = x.extents();
  const int64_t written = node.integer("axis", 1), rank = int64_t(extents.size());
  const int64_t axis = written < 0 ? written + rank : written;
  if (axis < 0 || axis > rank) throw error("axis {} does not exist", written);
  int64_t before = 1, after = 1;
  for (int64_t i = 0; i < rank; ++i) (i < axis ? before : after) *= extents[size_t(i)];
  set_reshaped(m, node, x, {before, after});
}

void squeeze(OnnxMapper& m, const OnnxNode& node) {
  OnnxNetValue x = m.value(node, 0);
  std::vector<bool> goes(x.axes.size(), !node.has_input(1));
  for (const int64_t axis : m.integers(node, 1)) goes[axis_of(axis, goes.size())] = true;
  std::vector<std::vector<size_t>> kept;
  for (size_t axis = 0; axis < goes.size(); ++axis) {
    const bool is_one = x.extent(axis) == 1;
    if (goes[axis] && !is_one && node.has_input(1)) throw error("axis {} is not of extent 1", axis);
    if (!goes[axis] || !is_one) kept.push_back(x.axes[axis]);
  }
  x.axes = std::move(kept);
  m.set(node, std::move(x));
}

void unsqueeze(OnnxMapper& m, const OnnxNode& node) {
  OnnxNetValue x = m.value(node, 0);
  for (const size_t axis : unsqueezed_axes(m.integers(node, 1), x.axes.size())) {
    x.axes.insert(x.axes.begin() + int64_t(axis), std::vector<size_t>{});
  }
  m.set(node, std::move(x));
}

void transpose(OnnxMapper& m, const OnnxNode& node) {
  OnnxNetValue x = m.operand(node, 0);
  std::vector<int64_t> order = node.integers("perm");
  const size_t rank = x.axes.size();
  if (order.empty()) {
    for (size_t i = rank; i-- > 0;) order.push_back(int64_t(i));
  }
  std::vector<std::vector<size_t>> axes;
  std::vector<int64_t> expanded;
  std::vector<bool> is_taken(rank);
  for (const int64_t written : order) {
    const size_t axis = axis_of(written, rank);
    if (is_taken[axis]) throw error("perm names axis {} twice", axis);
    is_taken[axis] = true;
    axes.push_back(x.axes[axis]);
    if (!x.expanded.empty()) expanded.push_back(x.expanded[axis]);
  }
  if (axes.size() != rank) throw error("perm has {} axes of {}", axes.size(), rank);
  x.axes = std::move(axes);
  x.expanded = std::move(expanded);
  m.set(node, std::move(x));
}

// ---- joined

void concat(OnnxMapper& m, const OnnxNode& node) {
  std::vector<OnnxNetValue> parts;
  const OnnxNetValue* computed = nullptr;
  std::vector<OnnxNetValue> values(node.inputs.size());
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (m.is_constant(node, i)) continue;
    values[i] = m.value(node, i);
    if (computed == nullptr || values[i].count() > computed->count()) computed = &values[i];
  }
  if (computed == nullptr) throw error("its inputs are constant");
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    parts.push_back(m.is_constant(node, i) ? value_of_constant(m, node, i, *computed) : values[i]);
  }
  const size_t axis = axis_of(node.integer("axis", 0), computed->axes.size());
  m.set(node, joined(m, node, std::move(parts), axis));
}

void expand(OnnxMapper& m, const OnnxNode& node) {
  const OnnxNetValue x = m.value(node, 0);
  std::vector<int64_t> wanted = m.integers(node, 1);
  std::vector<int64_t> extents = x.extents();
  const size_t rank = std::max(wanted.size(), extents.size());
  extents.insert(extents.begin(), rank - extents.size(), 1);
  wanted.insert(wanted.begin(), rank - wanted.size(), 1);
  bool grows = false;
  for (size_t i = 0; i < rank; ++i) {
    if (wanted[i] == 1) wanted[i] = extents[i];
    if (wanted[i] == extents[i]) continue;
    grows = true;
    if (extents[i] == 1 && wanted[i] > 1) continue;
    throw error("{} cannot become {}", fmt::join(extents, "x"), fmt::join(wanted, "x"));
  }
  OnnxNetValue result = x;
  result.axes.insert(result.axes.begin(), rank - result.axes.size(), {});
  if (grows) result.expanded = wanted;
  m.set(node, std::move(result));
}

void tile(OnnxMapper& m, const OnnxNode& node) {
  OnnxNetValue x = m.value(node, 0);
  const std::vector<int64_t> times = integers_of(*m.required(node, 1));
  std::vector<int64_t> extents = x.extents();
  if (times.size() != extents.size()) {
    throw error("it repeats {} axes of {}", times.size(), extents.size());
  }
  constexpr int64_t most = 1000000, most_parts = 64;
  for (size_t axis = 0; axis < times.size(); ++axis) {
    const bool is_single = extents[axis] == 1;
    if (times[axis] < 1 || times[axis] > (is_single ? most : most_parts)) {
      throw error("it repeats axis {} {} times", axis, times[axis]);
    }
    if (is_single) extents[axis] = times[axis];
    if (is_single || times[axis] == 1) continue;
    x = joined(m, node, std::vector<OnnxNetValue>(size_t(times[axis]), x), axis);
    extents[axis] *= times[axis];
  }
  m.set(node, m.repeated(std::move(x), extents));
}

// ---- reduced

OnnxNetValue reduced(OnnxMapper& m, const OnnxNode& node, OnnxNetValue x,
                     const std::string& operation) {
  const size_t rank = x.axes.size();
  const std::vector<int64_t> written = m.integers(node, 1);
  if (written.empty() && node.integer("noop_with_empty_axes", 0) != 0) return x;
  std::vector<bool> goes(rank, written.empty());
  for (const int64_t axis : written) goes[axis_of(axis, rank)] = true;
  std::vector<size_t> gone_axes;
  for (size_t axis = 0; axis < rank; ++axis) {
    if (goes[axis]) gone_axes.push_back(axis);
  }
  const bool keeps = node.integer("keepdims", 1) != 0;
  std::vector<size_t> gone = x.factors_of(gone_axes);
  std::sort(gone.begin(), gone.end());
  std::vector<size_t> order = x.factors_without(gone);
  const size_t kept = order.size();
  order.insert(order.end(), gone.begin(), gone.end());
  const int64_t count = x.product(gone), rest = x.count() / count;
  if (count > 1) {
    const bool as_it_is = std::is_sorted(order.begin(), order.end()) && x.net[0] == rest;
    x = m.arranged(x, order, as_it_is ? x.net : NetExtents{rest, count, 1});
    Message& layer =
        m.add(m.layer_name(node), operation == "ReduceSum" ? "Reduction" : "Pooling", {x.top});
    if (operation == "ReduceSum") {
      add_fields(layer, "reduction_param", {{"axis", "2"}});
    } else {
      add_fields(layer, "pooling_param",
                 {{"pool", operation == "ReduceMax" ? "MAX" : "AVE"}, {"global_pooling", "true"}});
    }
    x.top = layer.find("top")->text;
    x.net = {rest, 1, 1};
    x.factors.resize(kept);
    for (const size_t axis : gone_axes) x.axes[axis].clear();
  }
  if (!keeps) {
    for (size_t i = gone_axes.size(); i-- > 0;) {
      x.axes.erase(x.axes.begin() + int64_t(gone_axes[i]));
    }
  }
  return x;
}

// A reduction with functions of the values before it and of its result after it.
struct NamedReduction {
  const char *name, *before, *reduction, *after;
};
constexpr NamedReduction reductions[] = {
    {"ReduceL1", "AbsVal", "ReduceSum", ""},
    {"ReduceL2", "square", "ReduceSum", "root"},
    {"ReduceLogSum", "", "ReduceSum", "Log"},
    {"ReduceLogSumExp", "Exp", "ReduceSum", "Log"},
    {"ReduceMax", "", "ReduceMax", ""},
    {"ReduceMean", "", "ReduceMean", ""},
    {"ReduceMin", "negative", "ReduceMax", "negative"},
    {"ReduceSum", "", "ReduceSum", ""},
    {"ReduceSumSquare", "square", "ReduceSum", ""},
};

void reduce(OnnxMapper& m, const OnnxNode& node) {
  OnnxNetValue x = m.value(node, 0);
  const auto change = [&](const std::string& function) {
    if (function == "square") apply(m, node, x, "Power", "power_param", {{"power", "2"}});
    if (function == "root") apply(m, node, x, "Power", "power_param", {{"power", "0.5"}});
    if (function == "negative") apply(m, node, x, "Power", "power_param", {{"scale", "-1"}});
    if (function == "AbsVal" || function == "Exp" || function == "Log") {
      apply(m, node, x, function.c_str());
    }
  };
  for (const NamedReduction& known : reductions) {
    if (node.operation != known.name) continue;
    change(known.before);
    x = reduced(m, node, std::move(x), known.reduction);
    change(known.after);
  }
  m.set(node, std::move(x));
}

void softmax(OnnxMapper& m, const OnnxNode& node) {
  OnnxNetValue x = m.value(node, 0);
  const size_t axis = axis_of(node.integer("axis", -1), x.axes.size());
  std::vector<std::vector<size_t>> joined_axes;
  if (node.integer("flattens", 0) != 0) {
    joined_axes.assign(x.axes.begin() + int64_t(axis), x.axes.end());
    std::vector<size_t> all(x.axes.size() - axis);
    std::iota(all.begin(), all.end(), axis);
    x.axes[axis] = x.factors_of(all);
    x.axes.resize(axis + 1);
  }
  Line line = line_of(m, x, axis);
  x = line.value;
  apply(m, node, x, "Softmax", "softmax_param",
        line.axis == 1 ? Fields{} : Fields{{"axis", whole(line.axis)}});
  if (node.operation == "LogSoftmax") apply(m, node, x, "Log");
  if (!joined_axes.empty()) {  // each axis has its factors again
    auto factor = line.value.axes[axis].begin();
    x.axes.resize(axis);
    for (const auto& one : joined_axes) {
      x.axes.emplace_back(factor, factor + int64_t(one.size()));
      factor += int64_t(one.size());
    }
  }
  m.set(node, std::move(x));
}

}  // namespace

const std::vector<NamedOnnxOperator>& shapes() {
  static const std::vector<NamedOnnxOperator> table = [] {
    std::vector<NamedOnnxOperator> result{
        {"", "Concat", concat},       {"", "Expand", expand},   {"", "Flatten", flatten},
        {"", "LogSoftmax", softmax},  {"", "Reshape", reshape}, {"", "Softmax", softmax},
        {"", "Squeeze", squeeze},     {"", "Tile", tile},       {"", "Transpose", transpose},
        {"", "Unsqueeze", unsqueeze},
    };
    for (const NamedReduction& known : reductions) result.push_back({"", known.name, reduce});
    return result;
  }();
  return table;
}

}  // namespace tandem::onnx_operators
