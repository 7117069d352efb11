#include "core/model/onnx/layers.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/base/error.h"
#include "core/model/onnx/windows.h"

namespace tandem::onnx_forms {
namespace {

using Attribute = OnnxAttribute;

double number(const Layer& layer, const char* name) {
  return layer.attributes->number(name);
}

bool flag(const Layer& layer, const char* name) {
  return layer.attributes->integer(name) != 0;
}

// The only input through one operator, element by element or along the channels.
void simple(OnnxNet& model, const Layer& layer, const char* operation,
            const std::vector<Attribute>& attributes = {}) {
  const OnnxValue x = model.in(layer);
  model.set(layer, {model.graph.add(operation, layer.name, {x.name}, attributes), x.is_flat});
}

// The value itself, under no new name.
void same(OnnxNet& model, const Layer& layer) {
  for (size_t i = 0; i < layer.outputs.size(); ++i) model.set(layer, model.in(layer), i);
}

// A chain of operators on one value.
class Chain {
 public:
  Chain(OnnxNet& model, const Layer& layer)
      : model_(model), layer_(layer), value_(model.in(layer)) {}

  Chain& apply(const char* operation, const std::vector<Attribute>& attributes = {}) {
    value_.name = model_.graph.add(operation, name(operation), {value_.name}, attributes);
    return *this;
  }
  // With a number as the second operand.
  Chain& apply(const char* operation, double number) {
    const std::string operand = model_.graph.scalar(name("constant"), number);
    value_.name = model_.graph.add(operation, name(operation), {value_.name, operand});
    return *this;
  }
  Chain& apply_with(const char* operation, const std::string& operand) {
    value_.name = model_.graph.add(operation, name(operation), {value_.name, operand});
    return *this;
  }
  // shift + scale * x
  Chain& line(double shift, double scale) {
    if (scale != 1) apply("Mul", scale);
    if (shift != 0) apply("Add", shift);
    return *this;
  }
  [[nodiscard]] const OnnxValue& value() const { return value_; }
  void finish() { model_.set(layer_, value_); }

 private:
  [[nodiscard]] std::string name(const std::string& part) const { return layer_.name + "/" + part; }

  OnnxNet& model_;
  const Layer& layer_;
  OnnxValue value_;
};

// Of values for each channel, to be combined with x. Some runtimes take no leading axis of
// extent 1.
std::vector<int64_t> channel_extents(const OnnxValue& x, int64_t count) {
  return x.is_flat ? std::vector<int64_t>{count} : std::vector<int64_t>{count, 1, 1};
}

// ---- element by element

void relu(OnnxNet& model, const Layer& layer) {
  const double slope = number(layer, "negative_slope");
  if (slope == 0) return simple(model, layer, "Relu");
  simple(model, layer, "LeakyRelu", {{"alpha", static_cast<float>(slope)}});
}

void elu(OnnxNet& model, const Layer& layer) {
  simple(model, layer, "Elu", {{"alpha", static_cast<float>(number(layer, "alpha"))}});
}

// HardSigmoid limits shift + scale * x to 0 and 1. More runtimes have it than the Clip of opset 13.
void clip(OnnxNet& model, const Layer& layer) {
  const double min = number(layer, "min"), width = number(layer, "max") - min;
  Chain(model, layer)
      .apply("HardSigmoid",
             {{"alpha", static_cast<float>(1 / width)}, {"beta", static_cast<float>(-min / width)}})
      .line(min, width)
      .finish();
}

void prelu(OnnxNet& model, const Layer& layer) {
  const OnnxValue x = model.in(layer);
  const int64_t count = model.weight_count(layer, 0);
  const std::string slopes = model.graph.constant(layer.name + ".slope", channel_extents(x, count),
                                                  model.weight(layer, 0));
  model.set(layer, {model.graph.add("PRelu", layer.name, {x.name, slopes}), x.is_flat});
}

void power(OnnxNet& model, const Layer& layer) {
  Chain chain(model, layer);
  chain.line(number(layer, "shift"), number(layer, "scale"));
  if (number(layer, "power") != 1) chain.apply("Pow", number(layer, "power"));
  chain.finish();
}

double logarithm_of_base(const Layer& layer) {
  const double base = number(layer, "base");
  return base == -1 ? 1 : std::log(base);
}

void exp(OnnxNet& model, const Layer& layer) {
  const double factor = logarithm_of_base(layer);
  Chain(model, layer)
      .line(number(layer, "shift") * factor, number(layer, "scale") * factor)
      .apply("Exp")
      .finish();
}

void log(OnnxNet& model, const Layer& layer) {
  Chain(model, layer)
      .line(number(layer, "shift"), number(layer, "scale"))
      .apply("Log")
      .line(0, 1 / logarithm_of_base(layer))
      .finish();
}

void sigmoid_times(OnnxNet& model, const Layer& layer, double beta) {
  const std::string x = model.in(layer).name;
  Chain(model, layer).line(0, beta).apply("Sigmoid").apply_with("Mul", x).finish();
}
void silu(OnnxNet& model, const Layer& layer) {
  sigmoid_times(model, layer, 1);
}
void swish(OnnxNet& model, const Layer& layer) {
  sigmoid_times(model, layer, number(layer, "beta"));
}

void gelu(OnnxNet& model, const Layer& layer) {
  const std::string x = model.in(layer).name;
  Chain chain(model, layer);
  if (layer.attributes->text("approximate") == "tanh") {
    // tanh(sqrt(2 / pi) (x + 0.044715 x^3))
    chain.apply_with("Mul", x).line(1, 0.044715).apply_with("Mul", x);
    chain.line(0, std::sqrt(2 / std::numbers::pi)).apply("Tanh");
  } else {
    chain.line(0, 1 / std::numbers::sqrt2).apply("Erf");
  }
  chain.line(1, 1).apply_with("Mul", x).line(0, 0.5).finish();
}

// x / 6 + 1/2 between 0 and 1.
std::vector<Attribute> hard_slope() {
  return {{"alpha", 1.0F / 6}, {"beta", 0.5F}};
}

void hard_sigmoid(OnnxNet& model, const Layer& layer) {
  simple(model, layer, "HardSigmoid", hard_slope());
}
void hard_swish(OnnxNet& model, const Layer& layer) {
  const std::string x = model.in(layer).name;
  Chain(model, layer).apply("HardSigmoid", hard_slope()).apply_with("Mul", x).finish();
}

// ---- several inputs

bool any_flat(const OnnxNet& model, const Layer& layer) {
  for (size_t i = 0; i < layer.inputs.size(); ++i) {
    if (model.in(layer, i).is_flat) return true;
  }
  return false;
}

// All inputs with the same number of axes.
std::vector<std::string> alike(OnnxNet& model, const Layer& layer) {
  std::vector<std::string> names;
  for (size_t i = 0; i < layer.inputs.size(); ++i) {
    names.push_back(any_flat(model, layer) ? model.row(layer, i) : model.in(layer, i).name);
  }
  return names;
}

void eltwise(OnnxNet& model, const Layer& layer) {
  const bool is_flat = any_flat(model, layer);
  std::vector<std::string> inputs = alike(model, layer);
  const std::string operation = layer.attributes->text("operation");
  if (operation == "MAX") {
    return model.set(layer, {model.graph.add("Max", layer.name, inputs), is_flat});
  }
  const bool sums = operation == "SUM";
  const auto factors = sums ? listed<double>(*layer.attributes, "coeff") : std::vector<double>{};
  for (size_t i = 0; i < factors.size(); ++i) {
    if (factors[i] == 1) continue;
    const std::string factor = model.graph.scalar(layer.name + "/factor", factors[i]);
    inputs[i] = model.graph.add("Mul", layer.name + "/scaled", {inputs[i], factor});
  }
  std::string result = inputs.at(0);
  for (size_t i = 1; i < inputs.size(); ++i) {
    const bool is_last = i + 1 == inputs.size();
    result = model.graph.add(sums ? "Add" : "Mul", is_last ? layer.name : layer.name + "/part",
                             {result, inputs[i]});
  }
  model.set(layer, {result, is_flat});
}

int64_t axis_of(const Layer& layer, const char* old_name = nullptr) {
  const bool is_old = old_name != nullptr && layer.attributes->is_set(old_name);
  const int64_t axis = layer.attributes->integer(is_old ? old_name : "axis");
  return axis < 0 ? axis + 4 : axis;
}

void concat(OnnxNet& model, const Layer& layer) {
  const int64_t axis = axis_of(layer, "concat_dim");
  std::vector<std::string> inputs;
  bool all_flat = true;
  for (size_t i = 0; i < layer.inputs.size(); ++i) all_flat &= model.in(layer, i).is_flat;
  const bool is_flat = all_flat && axis == 1;
  for (size_t i = 0; i < layer.inputs.size(); ++i) {
    inputs.push_back(is_flat ? model.in(layer, i).name : model.image(layer, i));
  }
  model.set(layer, {model.graph.add("Concat", layer.name, inputs, {{"axis", axis}}), is_flat});
}

int64_t extent(const Shape& shape, int64_t axis) {
  const int64_t extents[] = {shape.n, shape.c, shape.h, shape.w};
  return extents[axis];
}

std::string slice_of(OnnxNet& model, const std::string& name, const std::string& x,
                     const std::vector<int64_t>& axes, const std::vector<int64_t>& starts,
                     const std::vector<int64_t>& ends) {
  OnnxGraph& graph = model.graph;
  return graph.add("Slice", name,
                   {x, graph.integers(name + "/starts", starts),
                    graph.integers(name + "/ends", ends), graph.integers(name + "/axes", axes)});
}

void slice(OnnxNet& model, const Layer& layer) {
  const int64_t axis = axis_of(layer, "slice_dim");
  const std::string x = model.image(layer);
  int64_t first = 0;
  for (size_t i = 0; i < layer.outputs.size(); ++i) {
    const int64_t end = first + extent(model.shape_out(layer, i), axis);
    const std::string name = fmt::format("{}/{}", layer.name, i);
    model.set(layer, {slice_of(model, name, x, {axis}, {first}, {end}), false}, i);
    first = end;
  }
}

void crop(OnnxNet& model, const Layer& layer) {
  const int64_t first = axis_of(layer);
  const auto offsets = listed<int64_t>(*layer.attributes, "offset");
  std::vector<int64_t> axes, starts, ends;
  for (int64_t axis = first; axis < 4; ++axis) {
    const auto at = static_cast<size_t>(axis - first);
    const int64_t start = offsets.empty() ? 0 : offsets.size() == 1 ? offsets[0] : offsets.at(at);
    axes.push_back(axis);
    starts.push_back(start);
    ends.push_back(start + extent(model.shape_out(layer), axis));
  }
  model.set(layer, {slice_of(model, layer.name, model.image(layer), axes, starts, ends), false});
}

// ---- shapes

void reshape(OnnxNet& model, const Layer& layer) {
  const Shape& from = model.shape_in(layer);
  const Shape& to = model.shape_out(layer);
  if (from.n != to.n) {
    throw no_onnx_form(layer, fmt::format("it makes {} of {}, and an exported net takes any number "
                                          "of rows",
                                          to_string(to), to_string(from)));
  }
  const std::string extents = model.graph.integers(layer.name + "/extents", {-1, to.c, to.h, to.w});
  model.set(layer,
            {model.graph.add("Reshape", layer.name, {model.in(layer).name, extents}), false});
}

void flatten(OnnxNet& model, const Layer& layer) {
  const Shape& to = model.shape_out(layer);
  if (to.h == 1 && to.w == 1) return model.set(layer, {model.row(layer), true});
  reshape(model, layer);
}

// Not the operator Tile, which some runtimes do not have.
void tile(OnnxNet& model, const Layer& layer) {
  const std::vector<std::string> inputs(static_cast<size_t>(layer.attributes->integer("tiles")),
                                        model.image(layer));
  model.set(layer,
            {model.graph.add("Concat", layer.name, inputs, {{"axis", axis_of(layer)}}), false});
}

void softmax(OnnxNet& model, const Layer& layer) {
  simple(model, layer, "Softmax", {{"axis", int64_t{1}}});
}

// ---- normalisation

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
  return axis_of(layer) == 1 && (count == 1 || (shape.h == 1 && shape.w == 1));
}

void require_channels(const OnnxNet& model, const Layer& layer) {
  if (covers_channels(model, layer)) return;
  throw no_onnx_form(
      layer, fmt::format("only values for each channel have an ONNX form here (axis "
                         "1, num_axes 1), but axis is {} and num_axes {}",
                         layer.attributes->integer("axis"), layer.attributes->integer("num_axes")));
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
  model.set(
      layer,
      {model.graph.add(operation, layer.name, {model.image(layer), model.image(layer, 1)}), false});
}

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

// A BatchNorm with the Scale that follows it: (x - mean) / sqrt(variance + eps) * factor + bias.
struct ChannelNorm {
  const Layer* norm = nullptr;
  const Layer* scale = nullptr;  // may be null
  double eps = 0;
  std::vector<float> mean, variance, factor, bias;

  [[nodiscard]] const Layer& last() const { return scale != nullptr ? *scale : *norm; }
};

ChannelNorm read_norm(const OnnxNet& model, const Layer& layer) {
  if (layer.attributes->is_set("use_global_stats") && !flag(layer, "use_global_stats")) {
    throw no_onnx_form(layer,
                       "use_global_stats: false normalises by the statistics of each batch, "
                       "which no ONNX operator does");
  }
  const auto channels = static_cast<size_t>(model.weight_count(layer, 0));
  const float total = *model.weight(layer, 2);
  const float share = total == 0 ? 0 : 1 / total;
  ChannelNorm norm;
  norm.norm = &layer;
  norm.eps = number(layer, "eps");
  for (size_t c = 0; c < channels; ++c) {
    norm.mean.push_back(model.weight(layer, 0)[c] * share);
    norm.variance.push_back(model.weight(layer, 1)[c] * share);
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
  const std::vector<Attribute> over_channels{{"axes", std::vector<int64_t>{1}},
                                             {"keepdims", int64_t{1}}};
  OnnxGraph& graph = model.graph;
  const OnnxValue x = model.in(layer);
  const auto name = [&](const char* part) { return layer.name + "/" + part; };
  const std::string mean = graph.add("ReduceMean", name("mean"), {x.name}, over_channels);
  const std::string centred = graph.add("Sub", name("centred"), {x.name, mean});
  const std::string squared = graph.add("Mul", name("squared"), {centred, centred});
  const std::string variance = graph.add("ReduceMean", name("variance"), {squared}, over_channels);
  const std::string added =
      graph.add("Add", name("added"), {variance, graph.scalar(name("eps"), number(layer, "eps"))});
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

void lrn(OnnxNet& model, const Layer& layer) {
  const int64_t size = layer.attributes->integer("local_size");
  const double alpha = number(layer, "alpha"), beta = number(layer, "beta");
  if (layer.attributes->text("norm_region") == "ACROSS_CHANNELS") {
    return simple(model, layer, "LRN",
                  {{"alpha", static_cast<float>(alpha)},
                   {"beta", static_cast<float>(beta)},
                   {"bias", static_cast<float>(number(layer, "k"))},
                   {"size", size}});
  }
  // x * (1 + alpha * mean of the squares around it)^-beta, with zeros around the image
  const std::string x = model.image(layer);
  const std::string squares = model.graph.add("Mul", layer.name + "/squares", {x, x});
  const int64_t pad = (size - 1) / 2;
  const OnnxWindow window{{size, size}, {1, 1}, {pad, pad}, {pad, pad}};
  std::string value = add_average(model.graph, layer.name, squares, window, {0, 0});
  for (const auto& [operation, operand] :
       {std::pair{"Mul", alpha}, std::pair{"Add", 1.0}, std::pair{"Pow", -beta}}) {
    const std::string constant = model.graph.scalar(layer.name + "/constant", operand);
    value = model.graph.add(operation, layer.name + "/" + operation, {value, constant});
  }
  model.set(layer, {model.graph.add("Mul", layer.name, {x, value}), false});
}

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
  const Layer* next = may_fold && model.folds() ? model.only_reader(layer, "BatchNorm") : nullptr;
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

// ---- pooling

void pooling(OnnxNet& model, const Layer& layer) {
  const Shape& in = model.shape_in(layer);
  const bool is_maximum = layer.attributes->text("pool") == "MAX";
  const std::string x = model.image(layer);
  if (flag(layer, "global_pooling")) {
    const char* operation = is_maximum ? "GlobalMaxPool" : "GlobalAveragePool";
    return model.set(layer, {model.graph.add(operation, layer.name, {x}), false});
  }
  const Shape& out = model.shape_out(layer);
  const OnnxAxes kernel = pair_of_axes(*layer.attributes, "kernel_size", "kernel_h", "kernel_w");
  const OnnxAxes stride = pair_of_axes(*layer.attributes, "stride", "stride_h", "stride_w", 1);
  const OnnxAxes pad = pair_of_axes(*layer.attributes, "pad", "pad_h", "pad_w", 0);
  // Rows and columns that the last windows need after the image; the number of windows then needs
  // no rounding up, of which runtimes have several ideas.
  const auto after = [](int64_t windows, int64_t step, int64_t size, int64_t before, int64_t all) {
    return std::max<int64_t>(0, (windows - 1) * step + size - all - before);
  };
  const OnnxAxes end{after(out.h, stride.h, kernel.h, pad.h, in.h),
                     after(out.w, stride.w, kernel.w, pad.w, in.w)};
  if (is_maximum) {
    const std::vector<int64_t> pads{pad.h, pad.w, end.h, end.w};
    return model.set(layer, {model.graph.add("MaxPool", layer.name, {x},
                                             {{"kernel_shape", std::vector{kernel.h, kernel.w}},
                                              {"strides", std::vector{stride.h, stride.w}},
                                              {"pads", pads}}),
                             false});
  }
  // An average counts what is inside the padding, but nothing beyond it.
  const OnnxAxes counted{std::min(end.h, pad.h), std::min(end.w, pad.w)};
  const OnnxAxes beyond{end.h - counted.h, end.w - counted.w};
  model.set(layer, {add_average(model.graph, layer.name, x, {kernel, stride, pad, counted}, beyond),
                    false});
}

struct NamedForm {
  const char* type;
  OnnxForm form;
};

constexpr NamedForm forms[] = {
    {"AbsVal", [](OnnxNet& m, const Layer& l) { simple(m, l, "Abs"); }},
    {"BNLL", [](OnnxNet& m, const Layer& l) { simple(m, l, "Softplus"); }},
    {"BatchNorm", batch_norm},
    {"Bias", bias},
    {"Clip", clip},
    {"Concat", concat},
    {"Convolution", convolution},
    {"Crop", crop},
    {"Deconvolution", deconvolution},
    {"Dropout", same},
    {"ELU", elu},
    {"Eltwise", eltwise},
    {"Exp", exp},
    {"Flatten", flatten},
    {"GELU", gelu},
    {"HardSigmoid", hard_sigmoid},
    {"HardSwish", hard_swish},
    {"InnerProduct", inner_product},
    {"LRN", lrn},
    {"LayerNorm", layer_norm},
    {"Log", log},
    {"PReLU", prelu},
    {"Pooling", pooling},
    {"Power", power},
    {"ReLU", relu},
    {"Reshape", reshape},
    {"Scale", scale},
    {"SiLU", silu},
    {"Sigmoid", [](OnnxNet& m, const Layer& l) { simple(m, l, "Sigmoid"); }},
    {"Slice", slice},
    {"Softmax", softmax},
    {"Split", same},
    {"Swish", swish},
    {"TanH", [](OnnxNet& m, const Layer& l) { simple(m, l, "Tanh"); }},
    {"Tile", tile},
};

}  // namespace
}  // namespace tandem::onnx_forms

namespace tandem {

OnnxForm onnx_form(const std::string& type) {
  for (const onnx_forms::NamedForm& named : onnx_forms::forms) {
    if (named.type == type) return named.form;
  }
  return nullptr;
}

}  // namespace tandem
