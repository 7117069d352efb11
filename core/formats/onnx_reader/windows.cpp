// Operators of windows: pooling, padding, normalization across channels.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/error.h"
#include "core/formats/onnx_reader/constants.h"
#include "core/formats/onnx_reader/operators.h"
#include "core/formats/onnx_reader/spans.h"

namespace tandem::onnx_operators {

OnnxImage image_of(const OnnxNetValue& value) {
  const size_t rank = value.axes.size();
  if ((rank != 3 && rank != 4) || value.extent(0) != 1) {
    throw error("its input is {}; an image has the axes N, C, H, W",
                fmt::join(value.extents(), "x"));
  }
  return {value.extent(1), rank == 4 ? value.extent(2) : 1, value.extent(rank - 1)};
}

OnnxSpan OnnxWindow::results(const OnnxImage& image) const {
  const auto along = [&](int64_t extent, int64_t size, int64_t step, int64_t apart, int64_t first,
                         int64_t last) {
    const int64_t room = extent + first + last - ((size - 1) * apart + 1);
    int64_t windows = (room + (rounds_up ? step - 1 : 0)) / step + 1;
    // As PyTorch and ONNX Runtime: a last window does not begin in the padding after the image.
    if (rounds_up && (windows - 1) * step >= extent + first) --windows;
    return room < 0 ? 0 : windows;
  };
  const OnnxSpan result{along(image.h, kernel.h, stride.h, dilation.h, before.h, after.h),
                        along(image.w, kernel.w, stride.w, dilation.w, before.w, after.w)};
  if (result.h < 1 || result.w < 1) {
    throw error("a window of {}x{} does not fit the image of {}x{}", kernel.h, kernel.w, image.h,
                image.w);
  }
  return result;
}

OnnxTensor OnnxWindow::corrections(const OnnxImage& image, bool counts_padding) const {
  const OnnxSpan count = results(image);
  const auto factor = [&](int64_t i, int64_t size, int64_t step, int64_t extent, int64_t first,
                          int64_t last) {
    const int64_t begin = i * step;
    const int64_t end = std::min(begin + size, first + extent + (counts_padding ? last : 0));
    const int64_t counted = end - (counts_padding ? begin : std::max(begin, first));
    return double(size) / double(std::max<int64_t>(1, counted));
  };
  OnnxTensor result;
  result.shape = {count.h, count.w};
  for (int64_t row = 0; row < count.h; ++row) {
    const double of_row = factor(row, kernel.h, stride.h, image.h, before.h, after.h);
    for (int64_t column = 0; column < count.w; ++column) {
      result.floats.push_back(static_cast<float>(
          of_row * factor(column, kernel.w, stride.w, image.w, before.w, after.w)));
    }
  }
  return result;
}

namespace {

constexpr int64_t most = 1000000;

OnnxSpan span_of(const OnnxNode& node, const char* name, size_t axes) {
  const std::vector<int64_t> values = node.integers(name);
  if (values.empty()) return {};
  if (values.size() != axes) throw error("{} has {} values", name, values.size());
  for (const int64_t value : values) {
    if (value < 1 || value > most) throw error("{} has the value {}", name, value);
  }
  return axes == 1 ? OnnxSpan{1, values[0]} : OnnxSpan{values[0], values[1]};
}

}  // namespace

OnnxWindow window_of(const OnnxNode& node, const OnnxImage& image, OnnxSpan kernel, size_t axes) {
  OnnxWindow window{kernel, span_of(node, "strides", axes), span_of(node, "dilations", axes)};
  window.rounds_up = node.integer("ceil_mode", 0) != 0;
  const std::string automatic = node.text("auto_pad", "NOTSET");
  const std::vector<int64_t> pads = node.integers("pads");
  for (const int64_t pad : pads) {
    if (pad < 0 || pad > most) throw error("pads has the value {}", pad);
  }
  if (automatic == "SAME_UPPER" || automatic == "SAME_LOWER") {
    const auto total = [](int64_t extent, int64_t size, int64_t step, int64_t apart) {
      const int64_t windows = (extent + step - 1) / step;
      return std::max<int64_t>(0, (windows - 1) * step + (size - 1) * apart + 1 - extent);
    };
    const OnnxSpan all{total(image.h, kernel.h, window.stride.h, window.dilation.h),
                       total(image.w, kernel.w, window.stride.w, window.dilation.w)};
    window.before = {all.h / 2, all.w / 2};
    window.after = {all.h - all.h / 2, all.w - all.w / 2};
    if (automatic == "SAME_LOWER") std::swap(window.before, window.after);
  } else if (automatic == "NOTSET" && !pads.empty()) {
    if (pads.size() != 2 * axes) throw error("pads has {} values", pads.size());
    window.before = axes == 1 ? OnnxSpan{0, pads[0]} : OnnxSpan{pads[0], pads[1]};
    window.after = axes == 1 ? OnnxSpan{0, pads[1]} : OnnxSpan{pads[2], pads[3]};
  }
  return window;
}

namespace {

OnnxNetValue add_pad(OnnxMapper& m, const OnnxNode& node, OnnxNetValue x, const OnnxSpan& before,
                     const OnnxSpan& after, double value, const std::string& mode) {
  Message& layer = m.add(m.layer_name(node) + "/pad", "Pad", {x.top});
  x.top = layer.find("top")->text;
  Fields fields{{"top", fmt::format("{}", before.h)},
                {"left", fmt::format("{}", before.w)},
                {"bottom", fmt::format("{}", after.h)},
                {"right", fmt::format("{}", after.w)}};
  if (value != 0) fields.emplace_back("value", text_of(value));
  if (mode != "CONSTANT") fields.emplace_back("mode", mode);
  add_fields(layer, "pad_param", fields);
  const NetExtents net{x.net[0], x.net[1] + before.h + after.h, x.net[2] + before.w + after.w};
  const bool has_two_axes = x.axes.size() == 4;
  x.net = net;
  if (has_two_axes) {
    x.set_plain({1, net[0], net[1], net[2]});
  } else {
    x.set_plain({1, net[0], net[2]});
  }
  return x;
}

}  // namespace

OnnxNetValue padded(OnnxMapper& m, const OnnxNode& node, OnnxNetValue x, OnnxWindow& window,
                    double value) {
  if (equal(window.before, window.after)) return x;
  x = add_pad(m, node, std::move(x), window.before, window.after, value, "CONSTANT");
  window.before = window.after = {0, 0};
  return x;
}

namespace {

// The value with other values before and after one of its axes.
OnnxNetValue padded_axis(OnnxMapper& m, const OnnxNode& node, OnnxNetValue x, size_t axis,
                         int64_t before, int64_t after, double value, const std::string& mode) {
  // The other factors keep their order; the axis is the height.
  const std::vector<size_t> own = x.axes[axis];
  std::vector<size_t> order = x.factors_without(own);
  const std::vector<size_t> others = order;
  int64_t first = 1;
  size_t place = 0;
  while (!own.empty() && place < others.size() && others[place] < own[0]) {
    first *= x.factors[others[place++]];
  }
  order.insert(order.begin() + int64_t(place), own.begin(), own.end());
  const int64_t extent = x.extent(axis);
  x = m.arranged(x, order, {first, extent, x.count() / first / extent});
  Message& layer = m.add(m.layer_name(node) + "/pad", "Pad", {x.top});
  Fields fields{{"top", fmt::format("{}", before)}, {"bottom", fmt::format("{}", after)}};
  if (value != 0) fields.emplace_back("value", text_of(value));
  if (mode != "CONSTANT") fields.emplace_back("mode", mode);
  add_fields(layer, "pad_param", fields);
  x.top = layer.find("top")->text;
  x.net[1] += before + after;
  // Its factors become one.
  const size_t count = own.size();
  for (std::vector<size_t>& factors : x.axes) {
    for (size_t& factor : factors) {
      if (factor >= place + count) factor -= count;
      if (factor >= place) ++factor;
    }
  }
  x.factors.erase(x.factors.begin() + int64_t(place), x.factors.begin() + int64_t(place + count));
  x.factors.insert(x.factors.begin() + int64_t(place), x.net[1]);
  x.axes[axis] = {place};
  return x;
}

}  // namespace

void add_both(Message& block, const std::string& each, const char* both, const OnnxSpan& span) {
  if (span.h == span.w) {
    block.add(both, fmt::format("{}", span.h));
  } else {
    block.add(each + "_h", fmt::format("{}", span.h));
    block.add(each + "_w", fmt::format("{}", span.w));
  }
}

OnnxNetValue image_value(const Message& layer, const NetExtents& net, size_t axes) {
  OnnxNetValue result;
  result.top = layer.find("top")->text;
  result.net = net;
  if (axes == 1) {
    result.set_plain({1, net[0], net[2]});
  } else {
    result.set_plain({1, net[0], net[1], net[2]});
  }
  return result;
}

namespace {

void global_pooling(OnnxMapper& m, const OnnxNode& node) {
  const bool is_maximum = node.operation != "GlobalAveragePool" && node.operation != "AveragePool";
  OnnxNetValue x = m.value(node, 0);
  const OnnxImage image = image_of(x);
  const size_t axes = x.axes.size() - 2;
  x = m.plain(x, {image.c, image.h, image.w});
  Message& layer = m.add(m.layer_name(node), "Pooling", {x.top});
  add_fields(layer, "pooling_param",
             {{"pool", is_maximum ? "MAX" : "AVE"}, {"global_pooling", "true"}});
  m.set(node, image_value(layer, {image.c, 1, 1}, axes));
}

void pooling(OnnxMapper& m, const OnnxNode& node) {
  const bool is_maximum = node.operation == "MaxPool";
  OnnxNetValue x = m.value(node, 0);
  const OnnxImage image = image_of(x);
  const size_t axes = x.axes.size() - 2;
  if (node.outputs.size() > 1 && !node.outputs[1].empty()) throw error("indices are not given");
  OnnxWindow window = window_of(node, image, span_of(node, "kernel_shape", axes), axes);
  if (!equal(window.dilation, {1, 1})) throw error("dilations are not read");
  if (node.integers("kernel_shape").empty()) throw error("kernel_shape is missing");
  const bool is_padded = !equal(window.before, {0, 0}) || !equal(window.after, {0, 0});
  if (!is_padded && equal(window.kernel, {1, 1}) && equal(window.stride, {1, 1})) {
    return m.set(node, std::move(x));
  }
  if (!is_padded && window.kernel.h == image.h && window.kernel.w == image.w) {
    return global_pooling(m, node);
  }
  const bool counts = is_maximum || node.integer("count_include_pad", 0) != 0 || !is_padded;
  x = m.plain(x, {image.c, image.h, image.w});
  const OnnxSpan results = window.results(image);
  // A last window that reaches beyond the image after it is the same as padding for a maximum.
  // So it is for an average that does not count it.
  const bool is_free = is_maximum || !counts;
  bool is_even = equal(window.before, window.after);
  for (const bool rounds_up : {true, false}) {
    OnnxWindow rounded = window;
    rounded.after = rounded.before;
    rounded.rounds_up = rounds_up;
    if (is_even || !is_free || !equal(rounded.results(image), results)) continue;
    window = rounded;
    is_even = true;
  }
  OnnxTensor factors;
  if (!is_even) {  // all that the windows reach is added, and their number is not rounded up
    factors = window.corrections(image, counts);
    const auto reach = [](int64_t windows, int64_t step, int64_t size, int64_t before) {
      return std::max<int64_t>(0, (windows - 1) * step + size - before);
    };
    window.after = {
        std::max<int64_t>(
            0, reach(results.h, window.stride.h, window.kernel.h, window.before.h) - image.h),
        std::max<int64_t>(
            0, reach(results.w, window.stride.w, window.kernel.w, window.before.w) - image.w)};
    window.rounds_up = false;
    constexpr double lowest = -3.4e38;
    x = padded(m, node, std::move(x), window, is_maximum ? lowest : 0);
  }
  Message& layer = m.add(m.layer_name(node), "Pooling", {x.top});
  Message& block = layer.add_block("pooling_param");
  block.add("pool", is_maximum ? "MAX" : "AVE");
  add_both(block, "kernel", "kernel_size", window.kernel);
  if (!equal(window.stride, {1, 1})) add_both(block, "stride", "stride", window.stride);
  if (!equal(window.before, {0, 0})) add_both(block, "pad", "pad", window.before);
  if (!window.rounds_up) block.add("round_mode", "FLOOR");
  if (!counts && is_even) block.add("count_padding", "false");
  x = image_value(layer, {image.c, results.h, results.w}, axes);
  const auto is_one = [](float factor) { return factor == 1; };
  if (!is_maximum && !std::all_of(factors.floats.begin(), factors.floats.end(), is_one)) {
    x = with_constant(m, node, std::move(x), factors, "Mul", 0);
  }
  m.set(node, std::move(x));
}

void lrn(OnnxMapper& m, const OnnxNode& node) {
  OnnxNetValue x = m.value(node, 0);
  const OnnxImage image = image_of(x);
  x = m.plain(x, {image.c, image.h, image.w});
  apply(m, node, x, "LRN", "lrn_param",
        {{"local_size", fmt::format("{}", node.integer("size", 1))},
         {"alpha", text_of(node.number("alpha", 1e-4F))},
         {"beta", text_of(node.number("beta", 0.75))},
         {"k", text_of(node.number("bias", 1))}});
  m.set(node, std::move(x));
}

// The values before each axis and after it.
std::vector<int64_t> pads_of(const OnnxMapper& m, const OnnxNode& node, size_t rank) {
  const std::vector<int64_t> pads = m.integers(node, 1);
  std::vector<int64_t> axes(rank), all(2 * rank, 0);
  std::iota(axes.begin(), axes.end(), 0);
  if (node.has_input(3)) axes = m.integers(node, 3);
  if (pads.size() != 2 * axes.size()) throw error("pads has {} values", pads.size());
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t axis = axis_of(axes[i], rank);
    all[axis] = pads[i];
    all[rank + axis] = pads[axes.size() + i];
  }
  for (const int64_t one : all) {
    if (one < -most || one > most) throw error("pads has the value {}", one);
  }
  return all;
}

void pad(OnnxMapper& m, const OnnxNode& node) {
  OnnxNetValue x = m.value(node, 0);
  const size_t rank = x.axes.size();
  std::vector<int64_t> pads = pads_of(m, node, rank);
  std::vector<size_t> axes;  // that are padded
  for (size_t axis = 0; axis < rank; ++axis) {
    int64_t &before = pads[axis], &after = pads[rank + axis];
    const int64_t cut = std::max<int64_t>(0, -before) + std::max<int64_t>(0, -after);
    if (cut > 0) {
      x = taken(m, node, x, axis, {std::max<int64_t>(0, -before), x.extent(axis) - cut, 1});
    }
    before = std::max<int64_t>(0, before);
    after = std::max<int64_t>(0, after);
    if (before + after > 0) axes.push_back(axis);
  }
  if (axes.empty()) return m.set(node, std::move(x));
  const std::string written = node.text("mode", "constant");
  const char* mode = written == "reflect" ? "REFLECT" : written == "edge" ? "EDGE" : "CONSTANT";
  if (written != "constant" && written != "reflect" && written != "edge") {
    throw error("mode {}", written);
  }
  double value = 0;
  if (node.has_input(2) && written == "constant") {
    const OnnxConstant constant = m.required(node, 2);
    if (constant->count() != 1) throw error("its value must be one number");
    constexpr double largest = 3.4e38;  // of the layer; before a maximum, as good as infinity
    value = std::clamp(constant->at(0), -largest, largest);
  }
  // The axes of an image, wherever its channels are.
  const bool is_image = rank == 4 && axes.front() > 0 && (axes.front() > 1 || axes.back() < 3);
  if (!is_image) {
    for (const size_t axis : axes) {
      x = padded_axis(m, node, std::move(x), axis, pads[axis], pads[rank + axis], value, mode);
    }
    return m.set(node, std::move(x));
  }
  const bool is_last = axes.back() != 3 && axes.front() == 1;  // N, H, W, C
  const std::vector<size_t> order =
      is_last ? std::vector<size_t>{3, 1, 2} : std::vector<size_t>{1, 2, 3};
  const NetExtents net{x.extent(order[0]), x.extent(order[1]), x.extent(order[2])};
  x = m.arranged(x, x.factors_of(order), net);
  x.set_plain({1, net[0], net[1], net[2]});
  const OnnxSpan before{pads[order[1]], pads[order[2]]};
  const OnnxSpan after{pads[rank + order[1]], pads[rank + order[2]]};
  x = add_pad(m, node, std::move(x), before, after, value, mode);
  if (is_last) x.axes = {x.axes[0], x.axes[2], x.axes[3], x.axes[1]};
  m.set(node, std::move(x));
}

}  // namespace

const std::vector<NamedOnnxOperator>& windows() {
  static const std::vector<NamedOnnxOperator> table{
      {"", "AveragePool", pooling},
      {"", "GlobalAveragePool", global_pooling},
      {"", "GlobalMaxPool", global_pooling},
      {"", "LRN", lrn},
      {"", "MaxPool", pooling},
      {"", "Pad", pad},
  };
  return table;
}

}  // namespace tandem::onnx_operators
