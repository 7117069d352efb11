// Convolutions of images, and of many images that are one sample's: windows, or planes of a volume.
#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/formats/onnx_reader/constants.h"
#include "core/formats/onnx_reader/operators.h"
#include "core/formats/onnx_reader/spans.h"

namespace tandem::onnx_operators {
namespace {

// The node with one entry of an attribute for each of these axes of its images, and its weights so.
OnnxNode with_axes(const OnnxNode& node, const std::vector<size_t>& axes, size_t rank) {
  OnnxNode result = node;
  for (const char* name : {"strides", "dilations", "kernel_shape", "pads"}) {
    const std::vector<int64_t> all = node.integers(name);
    if (all.empty()) continue;
    const size_t sides = std::string(name) == "pads" ? 2 : 1;
    if (all.size() != sides * rank) throw error("{} has {} values", name, all.size());
    std::vector<int64_t> kept;
    for (size_t side = 0; side < sides; ++side) {
      for (const size_t axis : axes) kept.push_back(all.at(side * rank + axis));
    }
    result.attributes[name] = kept;
  }
  return result;
}

// What a convolution reads: an image, where further axes are part of its width. They are the
// innermost, so that steps between pixels are `inner` elements.
struct Images {
  std::vector<size_t> axes;      // of the value: the height and the width of an image
  std::vector<size_t> separate;  // those that are convolved one by one
  int64_t inner = 1;             // how many images that makes
};

// Axes along which a window is one element wide and moves by one are separate.
Images images_of(const OnnxNode& node, const OnnxNetValue& x, const OnnxTensor& weight) {
  const size_t rank = x.axes.size();
  if (rank < 3 || weight.shape.size() != rank) {
    throw error("its weights have {} axes and its input {}", weight.shape.size(), rank);
  }
  Images images;
  if (x.extent(0) != 1) images.separate.push_back(0);
  const auto entry = [&](const char* name, size_t i, int64_t absent) {
    const std::vector<int64_t> all = node.integers(name);
    return i < all.size() ? all[i] : absent;
  };
  size_t left = rank - 2;
  for (size_t axis = 2; axis < rank; ++axis) {
    const size_t i = axis - 2;
    const bool is_point = weight.shape[axis] == 1 && entry("strides", i, 1) == 1 &&
                          entry("pads", i, 0) == 0 && entry("pads", i + rank - 2, 0) == 0;
    const bool is_separate = is_point && left > 2;  // of a volume only
    if (is_separate) --left;
    (is_separate ? images.separate : images.axes).push_back(axis);
  }
  if (images.axes.size() > 2) {
    throw error("its windows have {} axes; two are read", images.axes.size());
  }
  for (const size_t axis : images.separate) images.inner *= x.extent(axis);
  return images;
}

// Windows that step over the other images of a pixel. Returns what is left for another layer to do:
// the step from one window to the next.
int64_t interleave(OnnxWindow& window, const Images& images) {
  if (images.inner == 1) return 1;
  constexpr int64_t most = 1000000;
  if (images.inner > most) throw error("it has {} separate images", images.inner);
  window.dilation.w *= images.inner;
  window.before.w *= images.inner;
  window.after.w *= images.inner;
  return std::exchange(window.stride.w, 1);
}

// What the layer makes: channels, height and width, the separate axes, in the order of the input's.
OnnxNetValue result_of(const Message& layer, const NetExtents& net, const Images& images,
                       const OnnxNetValue& x) {
  const bool has_height = images.axes.size() == 2;
  std::vector<int64_t> extents{net[0]};
  if (has_height) extents.push_back(net[1]);
  extents.push_back(net[2] / images.inner);
  for (const size_t axis : images.separate) extents.push_back(x.extent(axis));
  OnnxNetValue result;
  result.top = layer.find("top")->text;
  result.net = net;
  result.set_plain(extents);
  std::vector<std::vector<size_t>> axes(x.axes.size());
  size_t next = 0;
  axes[1] = result.axes[next++];
  for (const auto* group : {&images.axes, &images.separate}) {
    for (const size_t axis : *group) axes[axis] = result.axes[next++];
  }
  result.axes = std::move(axes);
  return result;
}

// Errors for what is not read of a transposed convolution.
void check_transposed(const OnnxNode& node, const OnnxWindow& window, const Images& images) {
  if (images.inner != 1) throw error("a transposed convolution needs single images");
  if (!equal(window.before, window.after) || node.text("auto_pad", "NOTSET").starts_with("SAME")) {
    throw error("a transposed convolution needs equal padding on both sides");
  }
  if (!node.integers("output_shape").empty()) throw error("output_shape is not read");
  for (const int64_t more : node.integers("output_padding")) {
    if (more != 0) throw error("output_padding is not read");
  }
}

OnnxSpan transposed_extents(const OnnxImage& image, const OnnxWindow& window) {
  const auto extent = [](int64_t in, int64_t stride, int64_t pad, int64_t size, int64_t apart) {
    return (in - 1) * stride - 2 * pad + (size - 1) * apart + 1;
  };
  return {extent(image.h, window.stride.h, window.before.h, window.kernel.h, window.dilation.h),
          extent(image.w, window.stride.w, window.before.w, window.kernel.w, window.dilation.w)};
}

void convolution(OnnxMapper& m, const OnnxNode& node) {
  const bool is_transposed = node.operation == "ConvTranspose";
  OnnxNetValue x = m.value(node, 0);
  const OnnxConstant weight = m.required(node, 1);
  const Images images = images_of(node, x, *weight);
  const size_t axes = images.axes.size();
  const int64_t group = node.integer("group", 1);
  constexpr int64_t most_groups = 1000000;
  if (group < 1 || group > most_groups || weight->count() == 0) {
    throw error("it has {} groups and {} weights", group, weight->count());
  }
  const int64_t channels = weight->shape[is_transposed ? 0 : 1] * (is_transposed ? 1 : group);
  const int64_t outputs = weight->shape[is_transposed ? 1 : 0] * (is_transposed ? group : 1);
  if (channels != x.extent(1)) {
    throw error("its weights are {} in {} groups, its input has {} channels",
                fmt::join(weight->shape, "x"), group, x.extent(1));
  }
  const auto along = [&](const auto& of) {
    return axes == 1 ? OnnxSpan{1, of(images.axes[0])}
                     : OnnxSpan{of(images.axes[0]), of(images.axes[1])};
  };
  const OnnxSpan kernel = along([&](size_t axis) { return weight->shape[axis]; });
  const OnnxSpan extents = along([&](size_t axis) { return x.extent(axis); });
  std::vector<size_t> attributes;
  for (const size_t axis : images.axes) attributes.push_back(axis - 2);
  OnnxWindow window = window_of(with_axes(node, attributes, x.axes.size() - 2),
                                {channels, extents.h, extents.w}, kernel, axes);
  if (is_transposed) check_transposed(node, window, images);
  const int64_t step = interleave(window, images);
  const OnnxImage image{channels, extents.h, extents.w * images.inner};
  std::vector<size_t> order{1};
  order.insert(order.end(), images.axes.begin(), images.axes.end());
  order.insert(order.end(), images.separate.begin(), images.separate.end());
  const OnnxNetValue before = x;
  x = m.arranged(x, x.factors_of(order), {image.c, image.h, image.w});
  x = padded(m, node, std::move(x), window, 0);
  Message& layer =
      m.add(m.layer_name(node, {1, 2}), is_transposed ? "Deconvolution" : "Convolution", {x.top});
  const std::vector<float> biases = channel_values(m, node, 2, outputs);
  m.weight(layer, "weight", {weight->shape[0], weight->shape[1], kernel.h, kernel.w},
           floats_of(*weight), weight.get(), 1);
  if (!biases.empty()) m.weight(layer, "bias", {outputs}, biases, m.constant(node, 2).get(), 0);
  Message& block = layer.add_block("convolution_param");
  block.add("num_output", whole(outputs));
  add_both(block, "kernel", "kernel_size", kernel);
  if (!equal(window.stride, {1, 1})) add_both(block, "stride", "stride", window.stride);
  if (!equal(window.before, {0, 0})) add_both(block, "pad", "pad", window.before);
  if (!equal(window.dilation, {1, 1})) {
    block.add("dilation", whole(window.dilation.h));
    block.add("dilation", whole(window.dilation.w));
  }
  if (group != 1) block.add("group", whole(group));
  if (biases.empty()) block.add("bias_term", "false");
  add_filler(block, "weight_filler", "msra");
  const OnnxSpan size = is_transposed ? transposed_extents(image, window)
                                      : window.results(OnnxImage{x.net[0], x.net[1], x.net[2]});
  m.count_convolution(false);
  x = result_of(layer, {outputs, size.h, size.w}, images, before);
  if (step > 1) {
    const size_t width = images.axes.back();
    x = taken(m, node, x, width, {0, (x.extent(width) - 1) / step + 1, step});
  }
  m.set(node, std::move(x));
}

}  // namespace

const std::vector<NamedOnnxOperator>& convolutions() {
  static const std::vector<NamedOnnxOperator> table{
      {"", "Conv", convolution},
      {"", "ConvTranspose", convolution},
  };
  return table;
}

}  // namespace tandem::onnx_operators
