#include "core/formats/onnx/weighted_layers.h"

#include <cmath>

#include "core/model/file/batch_norm.h"
#include "core/model/net/layer_calls.h"

namespace tandem::onnx_forms {

namespace {

// Factors and biases of channels; empty: ones or zeros.
void per_channel(OnnxLayer& l, const std::vector<float>& factors,
                 const std::vector<float>& biases) {
  OnnxValue x = l.in();
  if (!factors.empty()) {
    x.name = l.add_part("Mul", "Mul", {x.name, channel_constant(l, x, "weight", factors)});
  }
  if (!biases.empty()) {
    x.name = l.add_part("Add", "Add", {x.name, channel_constant(l, x, "bias", biases)});
  }
  l.set(x);
}

// Whether the layer's own values cover the channels, or all elements with one value.
bool covers_channels(const OnnxLayer& l) {
  const int64_t count = l.integer("num_axes");
  if (count == 0) return true;
  const Shape& shape = l.shape_in();
  const int64_t axis = l.integer("axis");  // of four, counted from the end if negative
  return (axis == 1 || axis == -3) && (count == 1 || (shape.h == 1 && shape.w == 1));
}

// Values of (rows, channels, 1, 1) in as many elements as `shape` has. Some runtimes take the
// product with more than one row of them for an error, or compute another one.
std::string spread(OnnxLayer& l, const std::string& values, const Shape& shape) {
  const std::vector<float> factors{1, 1, float(shape.h), float(shape.w)};
  const std::string no_region = l.graph.constant(l.layer.name + ".region", {0}, {});
  const std::string scales = l.graph.constant(l.layer.name + ".scales", {4}, factors);
  return l.add_part("spread", "Resize", {values, no_region, scales},
                    {{"mode", std::string("nearest")},
                     {"coordinate_transformation_mode", std::string("asymmetric")},
                     {"nearest_mode", std::string("floor")}});
}

// The second input has values for each row: (rows, channels) or as the first.
void with_second_input(OnnxLayer& l, const char* operation) {
  const Shape &x = l.shape_in(), &values = l.shape_in(1);
  if (values.c != x.c || ((values.h != 1 || values.w != 1) && !equal(values, x))) {
    throw layer_error(l.layer,
                      "its second input is {}, and only one with a value for each channel or "
                      "element has an ONNX form",
                      to_string(values));
  }
  const std::string image = l.image(), second = l.image(1);
  const std::string all = equal(values, x) ? second : spread(l, second, x);
  l.set({l.add(operation, {image, all}), false});
}

}  // namespace

std::string channel_constant(OnnxLayer& l, const OnnxValue& x, const char* name,
                             const std::vector<float>& values) {
  const auto count = static_cast<int64_t>(values.size());
  // Some runtimes take no leading axis of extent 1.
  const auto extents = x.is_flat ? std::vector{count} : std::vector<int64_t>{count, 1, 1};
  return l.graph.constant(fmt::format("{}.{}", l.layer.name, name), extents, values);
}

namespace {

// Values for other axes than the channels, as a constant with four axes.
std::string axes_constant(OnnxLayer& l, const char* name, const std::vector<float>& values) {
  const Shape& shape = l.shape_in();
  const int64_t all[] = {shape.n, shape.c, shape.h, shape.w};
  const int64_t axis = l.integer("axis"), written = l.integer("num_axes");
  const int64_t first = axis < 0 ? axis + 4 : axis;
  const int64_t end = written < 0 ? 4 : first + written;
  std::vector<int64_t> extents(4, 1);
  for (int64_t i = first; i < end; ++i) extents[size_t(i)] = all[i];
  return l.graph.constant(fmt::format("{}.{}", l.layer.name, name), extents, values);
}

void per_axis(OnnxLayer& l, const std::vector<float>& factors, const std::vector<float>& biases) {
  std::string x = l.image();
  if (!factors.empty()) x = l.add_part("Mul", "Mul", {x, axes_constant(l, "weight", factors)});
  if (!biases.empty()) x = l.add_part("Add", "Add", {x, axes_constant(l, "bias", biases)});
  l.set({x, false});
}

}  // namespace

void scale(OnnxLayer& l) {
  if (l.layer.inputs.size() == 2) return with_second_input(l, "Mul");
  if (!covers_channels(l)) return per_axis(l, l.weight_values(0), l.weight_values(1));
  per_channel(l, l.weight_values(0), l.weight_values(1));
}

void bias(OnnxLayer& l) {
  if (l.layer.inputs.size() == 2) return with_second_input(l, "Add");
  if (!covers_channels(l)) return per_axis(l, {}, l.weight_values(0));
  per_channel(l, {}, l.weight_values(0));
}

namespace {

// A BatchNorm with the Scale that follows it or is part of it: (x - mean) / sqrt(variance + eps) *
// factor + bias.
struct ChannelNorm {
  OnnxLayer norm;
  std::optional<OnnxLayer> scale;  // a layer of its own
  double eps = 0;
  std::vector<float> mean, variance, factor, bias;

  // The layer whose output is the result; the one after the BatchNorm counts as written.
  OnnxLayer& finish() {
    if (scale) scale->mark_written();
    return scale ? *scale : norm;
  }
};

ChannelNorm read_norm(const OnnxLayer& l) {
  if (l.layer.attributes->is_set("use_global_stats") && l.integer("use_global_stats") == 0) {
    throw layer_error(l.layer,
                      "use_global_stats: false normalizes by the statistics of each batch, which "
                      "no ONNX operator does");
  }
  const auto channels = size_t(l.weight_count(0));
  const float total = l.weight_values(2).at(0);
  const float share = total == 0 ? 0 : 1 / total;
  ChannelNorm norm{l, {}, l.number("eps"), l.weight_values(0), l.weight_values(1), {}, {}};
  for (float& value : norm.mean) value *= share;
  for (float& value : norm.variance) value *= share;
  if (is_batch_norm_scale(l.layer.type->name)) {
    norm.factor = l.weight_values(3);
    norm.bias = l.weight_values(4);
    return norm;
  }
  norm.factor.assign(channels, 1);
  norm.bias.assign(channels, 0);
  const std::optional<OnnxLayer> next = l.only_reader();
  if (!next || !next->layer.is("Scale") || next->layer.inputs.size() != 1 ||
      !covers_channels(*next) || next->weight_count(0) != l.weight_count(0)) {
    return norm;
  }
  norm.scale.emplace(*next);
  norm.factor = next->weight_values(0);
  if (next->layer.weights.size() > 1) norm.bias = next->weight_values(1);
  return norm;
}

}  // namespace

void batch_norm(OnnxLayer& l) {
  ChannelNorm norm = read_norm(l);
  const OnnxValue x = l.in();
  const auto constant = [&](const char* what, const std::vector<float>& values) {
    return l.graph.constant(l.layer.name + what, {l.weight_count(0)}, values);
  };
  const std::string name =
      l.add("BatchNormalization",
            {x.name, constant(".weight", norm.factor), constant(".bias", norm.bias),
             constant(".mean", norm.mean), constant(".variance", norm.variance)},
            {{"epsilon", float(norm.eps)}});
  norm.finish().set({name, x.is_flat});
}

// The mean and deviation over the channels of each pixel.
void layer_norm(OnnxLayer& l) {
  const OnnxValue x = l.in();
  const std::string mean = l.add_reduction("mean", "ReduceMean", x.name, {1});
  const std::string centred = l.add_part("centred", "Sub", {x.name, mean});
  const std::string squared = l.add_part("squared", "Mul", {centred, centred});
  const std::string variance = l.add_reduction("variance", "ReduceMean", squared, {1});
  const std::string eps = l.graph.scalar(l.part("eps"), l.number("eps"));
  const std::string added = l.add_part("added", "Add", {variance, eps});
  const std::string deviation = l.add_part("deviation", "Sqrt", {added});
  std::string result = l.add_part("divided", "Div", {centred, deviation});
  if (!l.layer.weights.empty()) {
    const std::string factors = channel_constant(l, x, "weight", l.weight_values(0));
    result = l.add_part("scaled", "Mul", {result, factors});
    result = l.add("Add", {result, channel_constant(l, x, "bias", l.weight_values(1))});
  }
  l.set({result, x.is_flat});
}

namespace {

// ---- products

// The weights of a product by output, with a BatchNorm folded into them on request.
struct Product {
  std::vector<float> weights, biases;  // biases may be empty
  OnnxLayer last;                      // the layer whose output the product gives
};

Product read_product(const OnnxLayer& l, bool may_fold) {
  Product product{l.weight_values(0), l.weight_values(1), l};
  if (!may_fold || !l.folds()) return product;
  std::optional<OnnxLayer> next = l.only_reader();
  if (!next || !is_batch_norm(next->layer.type->name)) return product;
  ChannelNorm norm = read_norm(*next);
  const size_t outputs = norm.mean.size(), each = product.weights.size() / outputs;
  product.biases.resize(outputs, 0);
  for (size_t o = 0; o < outputs; ++o) {
    const double factor = norm.factor[o] / std::sqrt(norm.variance[o] + norm.eps);
    for (size_t i = o * each; i < (o + 1) * each; ++i) {
      product.weights[i] = float(product.weights[i] * factor);
    }
    product.biases[o] = float((product.biases[o] - norm.mean[o]) * factor + norm.bias[o]);
  }
  next->mark_folded();
  return {std::move(product.weights), std::move(product.biases), norm.finish()};
}

// Operands of Conv, ConvTranspose and Gemm.
std::vector<std::string> operands(OnnxLayer& l, const std::string& x, const Product& product,
                                  const std::vector<int64_t>& extents) {
  const std::string& name = l.layer.name;
  std::vector<std::string> names{x, l.graph.constant(name + ".weight", extents, product.weights)};
  if (product.biases.empty()) return names;
  const auto count = int64_t(product.biases.size());
  names.push_back(l.graph.constant(name + ".bias", {count}, product.biases));
  return names;
}

void convolve(OnnxLayer& l, const char* operation, bool may_fold) {
  Product product = read_product(l, may_fold);
  const Shape& weight = l.weight_shape(0);
  const OnnxAxes stride = l.axes("stride", 1), pad = l.axes("pad", 0);
  const OnnxAxes dilation = l.axes("dilation", 1);
  const std::string x = l.image();
  const std::string result =
      l.add(operation, operands(l, x, product, {weight.n, weight.c, weight.h, weight.w}),
            {{"kernel_shape", std::vector{weight.h, weight.w}},
             {"strides", std::vector{stride.h, stride.w}},
             {"pads", std::vector{pad.h, pad.w, pad.h, pad.w}},
             {"dilations", std::vector{dilation.h, dilation.w}},
             {"group", l.integer("group")}});
  product.last.set({result, false});
}

}  // namespace

void convolution(OnnxLayer& l) {
  convolve(l, "Conv", true);
}
void deconvolution(OnnxLayer& l) {
  convolve(l, "ConvTranspose", false);
}

void inner_product(OnnxLayer& l) {
  Product product = read_product(l, true);
  const int64_t outputs = l.shape_out().c;
  const std::string x = l.row();
  const int64_t inputs = int64_t(product.weights.size()) / outputs;
  const std::vector<std::string> all = operands(l, x, product, {outputs, inputs});
  product.last.set({l.add("Gemm", all, {{"transB", int64_t{1}}}), true});
}

}  // namespace tandem::onnx_forms
