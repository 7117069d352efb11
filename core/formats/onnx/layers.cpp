#include "core/formats/onnx/layers.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/base/error.h"
#include "core/formats/onnx/weighted_layers.h"
#include "core/formats/onnx/windows.h"

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

// ---- element by element

void relu(OnnxNet& model, const Layer& layer) {
  const double slope = number(layer, "negative_slope");
  if (slope == 0) return simple(model, layer, "Relu");
  simple(model, layer, "LeakyRelu", {{"alpha", static_cast<float>(slope)}});
}

void elu(OnnxNet& model, const Layer& layer) {
  simple(model, layer, "Elu", {{"alpha", static_cast<float>(number(layer, "alpha"))}});
}

// More runtimes have these operators than the Clip of opset 13. HardSigmoid limits shift + scale *
// x to 0 and 1, which rounds x to parts of the width between the bounds. Where these are wide, the
// sum x + relu(min - x) - relu(x - max) keeps x between them as it is.
void clip(OnnxNet& model, const Layer& layer) {
  constexpr double wide = 16;
  const double min = number(layer, "min"), max = number(layer, "max"), width = max - min;
  if (std::max(width, std::abs(min)) > wide) {
    const OnnxValue x = model.in(layer);
    OnnxGraph& graph = model.graph;
    const auto excess = [&](double shift, double scale) {
      return Chain(model, layer).line(shift, scale).apply("Relu").value().name;
    };
    const std::string below = excess(min, -1), above = excess(-max, 1);
    const std::string risen = graph.add("Add", layer.name + "/risen", {x.name, below});
    model.set(layer, {graph.add("Sub", layer.name, {risen, above}), x.is_flat});
    return;
  }
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

// ---- normalization by neighbouring channels

void lrn(OnnxNet& model, const Layer& layer) {
  const int64_t size = layer.attributes->integer("local_size");
  const double alpha = layer.attributes->number("alpha"), beta = layer.attributes->number("beta");
  if (layer.attributes->text("norm_region") == "ACROSS_CHANNELS") {
    return simple(model, layer, "LRN",
                  {{"alpha", static_cast<float>(alpha)},
                   {"beta", static_cast<float>(beta)},
                   {"bias", static_cast<float>(layer.attributes->number("k"))},
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
    {"BatchNormScale", batch_norm},
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
