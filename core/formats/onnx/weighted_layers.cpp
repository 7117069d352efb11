#include "core/formats/onnx/weighted_layers.h"

#include <cmath>

#include "core/base/error.h"
#include "core/formats/onnx/windows.h"
#include "core/model/file/batch_norm.h"

namespace tandem::onnx_forms {

std::vector<int64_t> channel_extents(const OnnxValue& x, int64_t count) {
  return x.is_flat ? std::vector<int64_t>{count} : std::vector<int64_t>{count, 1, 1};
}

namespace {

// Factors and biases of channels, where nullptr stands for ones or zeros.
void per_channel(OnnxNet& model, const Layer& layer, const float* factors, const float* biases,
                 int64_t count) {
  OnnxValue x = model.in(layer);
  const std::vector<int64_t> extents = channel_extents(x, count);
  if (factors != nullptr) {
    const std::string weight = model.graph.constant(layer.name + ".weight", extents, factors);
    x.name = model.graph.add("Mul", layer.name + "/Mul", {x.name, weight});
  }
  if (biases != nullptr) {
    const std::string bias = model.graph.constant(layer.name + ".bias", extents, biases);
    x.name = model.graph.add("Add", layer.name + "/Add", {x.name, bias});
  }
  model.set(layer, x);
}

// Whether the layer's own values cover the channels, or all elements with one value.
bool covers_channels(const OnnxNet& model, const Layer& layer) {
  const int64_t count = layer.attributes->integer("num_axes");
  if (count == 0) return true;
  const Shape& shape = model.shape_in(layer);
  const int64_t axis =
      layer.attributes->integer("axis");  // of four, counted from the end if negative
  return (axis == 1 || axis == -3) && (count == 1 || (shape.h == 1 && shape.w == 1));
}

void require_channels(const OnnxNet& model, const Layer& layer) {
  if (covers_channels(model, layer)) return;
  throw no_onnx_form(
      layer, fmt::format("only values for each channel have an ONNX form here (axis "
                         "1, num_axes 1), but axis is {} and num_axes {}",
                         layer.attributes->integer("axis"), layer.attributes->integer("num_axes")));
}

// Values of (rows, channels, 1, 1) in as many elements as `shape` has. Some runtimes take the
// product with more than one row of them for an error, or compute another one.
std::string spread(OnnxNet& model, const Layer& layer, const std::string& values,
                   const Shape& shape) {
  OnnxGraph& graph = model.graph;
  const std::vector<float> factors{1, 1, static_cast<float>(shape.h), static_cast<float>(shape.w)};
  const std::string no_region = graph.constant(layer.name + ".region", {0}, factors.data());
  const std::string scales = graph.constant(layer.name + ".scales", {4}, factors.data());
  return graph.add("Resize", layer.name + "/spread", {values, no_region, scales},
                   {{"mode", std::string("nearest")},
                    {"coordinate_transformation_mode", std::string("asymmetric")},
                    {"nearest_mode", std::string("floor")}});
}

// The second input has values for each row: (rows, channels) or as the first.
void with_second_input(OnnxNet& model, const Layer& layer, const char* operation) {
  const Shape& x = model.shape_in(layer);
  const Shape& values = model.shape_in(layer, 1);
  const bool fits = values.c == x.c && ((values.h == 1 && values.w == 1) || equal(values, x));
  if (!fits) {
    throw no_onnx_form(layer, fmt::format("its second input is {}, and only one with a value for "
                                          "each channel or element has an ONNX form",
                                          to_string(values)));
  }
  const std::string image = model.image(layer), second = model.image(layer, 1);
  const std::string all = equal(values, x) ? second : spread(model, layer, second, x);
  model.set(layer, {model.graph.add(operation, layer.name, {image, all}), false});
}

}  // namespace

void scale(OnnxNet& model, const Layer& layer) {
  if (layer.inputs.size() == 2) return with_second_input(model, layer, "Mul");
  require_channels(model, layer);
  per_channel(model, layer, model.weight(layer, 0),
              layer.weights.size() > 1 ? model.weight(layer, 1) : nullptr,
              model.weight_count(layer, 0));
}

void bias(OnnxNet& model, const Layer& layer) {
  if (layer.inputs.size() == 2) return with_second_input(model, layer, "Add");
  require_channels(model, layer);
  per_channel(model, layer, nullptr, model.weight(layer, 0), model.weight_count(layer, 0));
}

namespace {

// A BatchNorm with the Scale that follows it or is part of it: (x - mean) / sqrt(variance + eps) *
// factor + bias.
struct ChannelNorm {
  const Layer* norm = nullptr;
  const Layer* scale = nullptr;  // may be null
  double eps = 0;
  std::vector<float> mean, variance, factor, bias;

  [[nodiscard]] const Layer& last() const { return scale != nullptr ? *scale : *norm; }
};

ChannelNorm read_norm(const OnnxNet& model, const Layer& layer) {
  if (layer.attributes->is_set("use_global_stats") &&
      layer.attributes->integer("use_global_stats") == 0) {
    throw no_onnx_form(layer,
                       "use_global_stats: false normalises by the statistics of each batch, "
                       "which no ONNX operator does");
  }
  const auto channels = static_cast<size_t>(model.weight_count(layer, 0));
  const float total = *model.weight(layer, 2);
  const float share = total == 0 ? 0 : 1 / total;
  ChannelNorm norm;
  norm.norm = &layer;
  norm.eps = layer.attributes->number("eps");
  for (size_t c = 0; c < channels; ++c) {
    norm.mean.push_back(model.weight(layer, 0)[c] * share);
    norm.variance.push_back(model.weight(layer, 1)[c] * share);
  }
  if (is_batch_norm_scale(layer.type->name)) {
    norm.factor.assign(model.weight(layer, 3), model.weight(layer, 3) + channels);
    norm.bias.assign(model.weight(layer, 4), model.weight(layer, 4) + channels);
    return norm;
  }
  norm.factor.assign(channels, 1);
  norm.bias.assign(channels, 0);
  const Layer* next = model.only_reader(layer, "Scale");
  if (next == nullptr || next->inputs.size() != 1 || !covers_channels(model, *next) ||
      model.weight_count(*next, 0) != static_cast<int64_t>(channels)) {
    return norm;
  }
  norm.scale = next;
  norm.factor.assign(model.weight(*next, 0), model.weight(*next, 0) + channels);
  if (next->weights.size() > 1) {
    norm.bias.assign(model.weight(*next, 1), model.weight(*next, 1) + channels);
  }
  return norm;
}

}  // namespace

void batch_norm(OnnxNet& model, const Layer& layer) {
  const ChannelNorm norm = read_norm(model, layer);
  const OnnxValue x = model.in(layer);
  const std::vector<int64_t> extents{static_cast<int64_t>(norm.mean.size())};
  const auto constant = [&](const char* what, const std::vector<float>& values) {
    return model.graph.constant(layer.name + what, extents, values);
  };
  const std::string name =
      model.graph.add("BatchNormalization", layer.name,
                      {x.name, constant(".weight", norm.factor), constant(".bias", norm.bias),
                       constant(".mean", norm.mean), constant(".variance", norm.variance)},
                      {{"epsilon", static_cast<float>(norm.eps)}});
  model.set(norm.last(), {name, x.is_flat});
  if (norm.scale != nullptr) model.mark_written(*norm.scale);
}

// The mean and deviation over the channels of each pixel.
void layer_norm(OnnxNet& model, const Layer& layer) {
  const std::vector<OnnxAttribute> over_channels{{"axes", std::vector<int64_t>{1}},
                                                 {"keepdims", int64_t{1}}};
  OnnxGraph& graph = model.graph;
  const OnnxValue x = model.in(layer);
  const auto name = [&](const char* part) { return layer.name + "/" + part; };
  const std::string mean = graph.add("ReduceMean", name("mean"), {x.name}, over_channels);
  const std::string centred = graph.add("Sub", name("centred"), {x.name, mean});
  const std::string squared = graph.add("Mul", name("squared"), {centred, centred});
  const std::string variance = graph.add("ReduceMean", name("variance"), {squared}, over_channels);
  const std::string added = graph.add(
      "Add", name("added"), {variance, graph.scalar(name("eps"), layer.attributes->number("eps"))});
  const std::string deviation = graph.add("Sqrt", name("deviation"), {added});
  OnnxValue result{graph.add("Div", name("divided"), {centred, deviation}), x.is_flat};
  model.set(layer, result);
  if (layer.weights.empty()) return;
  const int64_t channels = model.weight_count(layer, 0);
  const std::vector<int64_t> extents = channel_extents(x, channels);
  result.name = graph.add(
      "Mul", name("scaled"),
      {result.name, graph.constant(layer.name + ".weight", extents, model.weight(layer, 0))});
  result.name = graph.add(
      "Add", layer.name,
      {result.name, graph.constant(layer.name + ".bias", extents, model.weight(layer, 1))});
  model.set(layer, result);
}

namespace {

// ---- products

// The weights of a product by output, with a BatchNorm folded into them on request.
struct Product {
  std::vector<float> weights, biases;  // biases may be empty
  const Layer* last = nullptr;         // the layer whose output the product gives
};

Product read_product(OnnxNet& model, const Layer& layer, bool may_fold) {
  Product product;
  const float* weights = model.weight(layer, 0);
  product.weights.assign(weights, weights + model.weight_count(layer, 0));
  if (layer.weights.size() > 1) {
    const float* biases = model.weight(layer, 1);
    product.biases.assign(biases, biases + model.weight_count(layer, 1));
  }
  product.last = &layer;
  if (!may_fold || !model.folds()) return product;
  const Layer* next = model.only_reader(layer, "BatchNorm");
  if (next == nullptr) next = model.only_reader(layer, "BatchNormScale");
  if (next == nullptr) return product;
  const ChannelNorm norm = read_norm(model, *next);
  const size_t outputs = norm.mean.size(), each = product.weights.size() / outputs;
  product.biases.resize(outputs, 0);
  for (size_t o = 0; o < outputs; ++o) {
    const double factor = norm.factor[o] / std::sqrt(norm.variance[o] + norm.eps);
    for (size_t i = o * each; i < (o + 1) * each; ++i) {
      product.weights[i] = static_cast<float>(product.weights[i] * factor);
    }
    product.biases[o] =
        static_cast<float>((product.biases[o] - norm.mean[o]) * factor + norm.bias[o]);
  }
  product.last = &norm.last();
  model.mark_folded(*next);
  if (norm.scale != nullptr) model.mark_written(*norm.scale);
  return product;
}

// Operands of Conv, ConvTranspose and Gemm.
std::vector<std::string> operands(OnnxNet& model, const Layer& layer, const std::string& x,
                                  const Product& product, const std::vector<int64_t>& extents) {
  std::vector<std::string> names{
      x, model.graph.constant(layer.name + ".weight", extents, product.weights)};
  if (product.biases.empty()) return names;
  names.push_back(model.graph.constant(
      layer.name + ".bias", {static_cast<int64_t>(product.biases.size())}, product.biases));
  return names;
}

void convolve(OnnxNet& model, const Layer& layer, const char* operation, bool may_fold) {
  const Product product = read_product(model, layer, may_fold);
  const Shape& weight = model.net.weight(layer.weights.at(0)).shape;
  const OnnxAxes stride = repeated_axes(*layer.attributes, "stride", {1, 1});
  const OnnxAxes pad = repeated_axes(*layer.attributes, "pad", {0, 0});
  const OnnxAxes dilation = repeated_axes(*layer.attributes, "dilation", {1, 1});
  const std::string x = model.image(layer);
  const std::string result =
      model.graph.add(operation, layer.name,
                      operands(model, layer, x, product, {weight.n, weight.c, weight.h, weight.w}),
                      {{"kernel_shape", std::vector<int64_t>{weight.h, weight.w}},
                       {"strides", std::vector<int64_t>{stride.h, stride.w}},
                       {"pads", std::vector<int64_t>{pad.h, pad.w, pad.h, pad.w}},
                       {"dilations", std::vector<int64_t>{dilation.h, dilation.w}},
                       {"group", layer.attributes->integer("group")}});
  model.set(*product.last, {result, false});
}

}  // namespace
void convolution(OnnxNet& model, const Layer& layer) {
  convolve(model, layer, "Conv", true);
}
void deconvolution(OnnxNet& model, const Layer& layer) {
  convolve(model, layer, "ConvTranspose", false);
}

void inner_product(OnnxNet& model, const Layer& layer) {
  const Product product = read_product(model, layer, true);
  const auto outputs = model.shape_out(layer).c;
  const std::string x = model.row(layer);
  const int64_t inputs = static_cast<int64_t>(product.weights.size()) / outputs;
  const std::string result =
      model.graph.add("Gemm", layer.name, operands(model, layer, x, product, {outputs, inputs}),
                      {{"transB", int64_t{1}}});
  model.set(*product.last, {result, true});
}

}  // namespace tandem::onnx_forms
