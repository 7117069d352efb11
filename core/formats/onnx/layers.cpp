#include "core/formats/onnx/layers.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/formats/onnx/weighted_layers.h"
#include "core/model/net/layer_calls.h"

namespace tandem::onnx_forms {
namespace {

// The only input through one operator, element by element or along the channels.
void simple(OnnxLayer& l, const char* operation,
            const std::vector<OnnxAttribute>& attributes = {}) {
  const OnnxValue x = l.in();
  l.set({l.add(operation, {x.name}, attributes), x.is_flat});
}

// The value itself, under no new name.
void same(OnnxLayer& l) {
  for (size_t i = 0; i < l.layer.outputs.size(); ++i) l.set(l.in(), i);
}

// A chain of operators on one value.
class Chain {
 public:
  explicit Chain(OnnxLayer& layer) : layer_(layer), value_(layer.in()) {}

  Chain& apply(const char* operation, const std::vector<OnnxAttribute>& attributes = {}) {
    value_.name = layer_.add_part(operation, operation, {value_.name}, attributes);
    return *this;
  }
  // With a number as the second operand.
  Chain& apply(const char* operation, double number) {
    return apply_with(operation, layer_.graph.scalar(layer_.part("constant"), number));
  }
  Chain& apply_with(const char* operation, const std::string& operand) {
    value_.name = layer_.add_part(operation, operation, {value_.name, operand});
    return *this;
  }
  // shift + scale * x
  Chain& line(double shift, double scale) {
    if (scale != 1) apply("Mul", scale);
    if (shift != 0) apply("Add", shift);
    return *this;
  }
  [[nodiscard]] const OnnxValue& value() const { return value_; }
  void finish() { layer_.set(value_); }

 private:
  OnnxLayer& layer_;
  OnnxValue value_;
};

// ---- element by element

void relu(OnnxLayer& l) {
  const double slope = l.number("negative_slope");
  if (slope == 0) return simple(l, "Relu");
  simple(l, "LeakyRelu", {{"alpha", float(slope)}});
}

// More runtimes have these operators than the Clip of opset 13. HardSigmoid limits shift + scale *
// x to 0 and 1, which rounds x to parts of the width between the bounds. Where these are wide, the
// sum x + relu(min - x) - relu(x - max) keeps x between them as it is.
void clip(OnnxLayer& l) {
  constexpr double wide = 16;
  const double min = l.number("min"), max = l.number("max"), width = max - min;
  if (std::max(width, std::abs(min)) > wide) {
    const OnnxValue x = l.in();
    const auto excess = [&](double shift, double scale) {
      return Chain(l).line(shift, scale).apply("Relu").value().name;
    };
    const std::string below = excess(min, -1), above = excess(-max, 1);
    const std::string risen = l.add_part("risen", "Add", {x.name, below});
    return l.set({l.add("Sub", {risen, above}), x.is_flat});
  }
  Chain(l)
      .apply("HardSigmoid", {{"alpha", float(1 / width)}, {"beta", float(-min / width)}})
      .line(min, width)
      .finish();
}

void prelu(OnnxLayer& l) {
  const OnnxValue x = l.in();
  const std::string slopes = channel_constant(l, x, "slope", l.weight_values(0));
  l.set({l.add("PRelu", {x.name, slopes}), x.is_flat});
}

void power(OnnxLayer& l) {
  Chain chain(l);
  chain.line(l.number("shift"), l.number("scale"));
  if (l.number("power") != 1) chain.apply("Pow", l.number("power"));
  chain.finish();
}

double logarithm_of_base(const OnnxLayer& l) {
  const double base = l.number("base");
  return base == -1 ? 1 : std::log(base);
}

void exp(OnnxLayer& l) {
  const double factor = logarithm_of_base(l);
  Chain(l).line(l.number("shift") * factor, l.number("scale") * factor).apply("Exp").finish();
}

void log(OnnxLayer& l) {
  Chain chain(l);
  chain.line(l.number("shift"), l.number("scale")).apply("Log").line(0, 1 / logarithm_of_base(l));
  chain.finish();
}

void sigmoid_times(OnnxLayer& l, double beta) {
  Chain(l).line(0, beta).apply("Sigmoid").apply_with("Mul", l.in().name).finish();
}

void gelu(OnnxLayer& l) {
  const std::string x = l.in().name;
  Chain chain(l);
  if (l.text("approximate") == "tanh") {
    // tanh(sqrt(2 / pi) (x + 0.044715 x^3))
    chain.apply_with("Mul", x).line(1, 0.044715).apply_with("Mul", x);
    chain.line(0, std::sqrt(2 / std::numbers::pi)).apply("Tanh");
  } else {
    chain.line(0, 1 / std::numbers::sqrt2).apply("Erf");
  }
  chain.line(1, 1).apply_with("Mul", x).line(0, 0.5).finish();
}

// x / 6 + 1/2 between 0 and 1.
const std::vector<OnnxAttribute> hard_slope{{"alpha", 1.0F / 6}, {"beta", 0.5F}};

void hard_swish(OnnxLayer& l) {
  Chain(l).apply("HardSigmoid", hard_slope).apply_with("Mul", l.in().name).finish();
}

// ---- several inputs

std::vector<OnnxValue> all_inputs(const OnnxLayer& l) {
  std::vector<OnnxValue> values;
  for (size_t i = 0; i < l.layer.inputs.size(); ++i) values.push_back(l.in(i));
  return values;
}

bool is_flat(const OnnxValue& value) {
  return value.is_flat;
}

void eltwise(OnnxLayer& l) {
  const std::vector<OnnxValue> values = all_inputs(l);
  const bool flat = std::any_of(values.begin(), values.end(), is_flat);
  std::vector<std::string> inputs;  // with the same number of axes
  for (size_t i = 0; i < values.size(); ++i) inputs.push_back(flat ? l.row(i) : values[i].name);
  const std::string& operation = l.text("operation");
  constexpr std::pair<const char*, const char*> names[] = {
      {"MAX", "Max"}, {"MIN", "Min"}, {"DIV", "Div"}, {"POW", "Pow"}};
  for (const auto& [ours, onnx] : names) {
    if (operation == ours) return l.set({l.add(onnx, inputs), flat});
  }
  const bool sums = operation == "SUM";
  const auto factors = sums ? l.listed<double>("coeff") : std::vector<double>{};
  for (size_t i = 0; i < factors.size(); ++i) {
    if (factors[i] == 1) continue;
    const std::string factor = l.graph.scalar(l.part("factor"), factors[i]);
    inputs[i] = l.add_part("scaled", "Mul", {inputs[i], factor});
  }
  const char* combined = sums ? "Add" : "Mul";
  std::string result = inputs.at(0);
  for (size_t i = 1; i < inputs.size(); ++i) {
    const bool is_last = i + 1 == inputs.size();
    result = is_last ? l.add(combined, {result, inputs[i]})
                     : l.add_part("part", combined, {result, inputs[i]});
  }
  l.set({result, flat});
}

int64_t axis_of(const OnnxLayer& l, const char* old_name = nullptr) {
  const bool is_old = old_name != nullptr && l.layer.attributes->is_set(old_name);
  const int64_t axis = l.integer(is_old ? old_name : "axis");
  return axis < 0 ? axis + 4 : axis;
}

void concat(OnnxLayer& l) {
  const int64_t axis = axis_of(l, "concat_dim");
  const std::vector<OnnxValue> values = all_inputs(l);
  const bool flat = axis == 1 && std::all_of(values.begin(), values.end(), is_flat);
  std::vector<std::string> inputs;
  for (size_t i = 0; i < values.size(); ++i) {
    inputs.push_back(flat ? values[i].name : l.image(i));
  }
  l.set({l.add("Concat", inputs, {{"axis", axis}}), flat});
}

int64_t extent(const Shape& shape, int64_t axis) {
  const int64_t extents[] = {shape.n, shape.c, shape.h, shape.w};
  return extents[axis];
}

std::string slice_of(OnnxGraph& graph, const std::string& name, const std::string& x,
                     const std::vector<int64_t>& axes, const std::vector<int64_t>& starts,
                     const std::vector<int64_t>& ends, int64_t step = 1) {
  std::vector<std::string> inputs{x, graph.integers(name + "/starts", starts),
                                  graph.integers(name + "/ends", ends),
                                  graph.integers(name + "/axes", axes)};
  if (step != 1) inputs.push_back(graph.integers(name + "/steps", {step}));
  return graph.add("Slice", name, inputs);
}

void slice(OnnxLayer& l) {
  const int64_t axis = axis_of(l, "slice_dim");
  const std::string x = l.image();
  const bool takes_steps = l.layer.attributes->is_set("start") ||
                           l.layer.attributes->is_set("step") ||
                           l.layer.attributes->is_set("count");
  if (takes_steps) {
    const int64_t step = l.integer("step"), extent_in = extent(l.shape_in(), axis);
    const bool from_end = step < 0 && !l.layer.attributes->is_set("start");
    const int64_t start = from_end ? extent_in - 1 : l.integer("start");
    int64_t end = start + step * extent(l.shape_out(), axis);
    if (end < 0) end = -extent_in - 1;  // before the first; -1 is the last
    return l.set({slice_of(l.graph, l.layer.name, x, {axis}, {start}, {end}, step), false});
  }
  int64_t first = 0;
  for (size_t i = 0; i < l.layer.outputs.size(); ++i) {
    const int64_t end = first + extent(l.shape_out(i), axis);
    const std::string name = l.part(fmt::format("{}", i));
    l.set({slice_of(l.graph, name, x, {axis}, {first}, {end}), false}, i);
    first = end;
  }
}

void crop(OnnxLayer& l) {
  const int64_t first = axis_of(l);
  const auto offsets = l.listed<int64_t>("offset");
  std::vector<int64_t> axes, starts, ends;
  for (int64_t axis = first; axis < 4; ++axis) {
    const auto at = size_t(axis - first);
    const int64_t start = offsets.empty() ? 0 : offsets.size() == 1 ? offsets[0] : offsets.at(at);
    axes.push_back(axis);
    starts.push_back(start);
    ends.push_back(start + extent(l.shape_out(), axis));
  }
  l.set({slice_of(l.graph, l.layer.name, l.image(), axes, starts, ends), false});
}

void reduction(OnnxLayer& l) {
  const std::string& operation = l.text("operation");
  const char* name = operation == "SUM"     ? "ReduceSum"
                     : operation == "ASUM"  ? "ReduceL1"
                     : operation == "SUMSQ" ? "ReduceSumSquare"
                                            : "ReduceMean";
  std::vector<int64_t> axes;
  for (int64_t axis = axis_of(l); axis < 4; ++axis) axes.push_back(axis);
  const std::string result = l.add_reduction("sum", name, l.image(), axes);
  const std::string factor = l.graph.scalar(l.part("factor"), l.number("coeff"));
  l.set({l.add("Mul", {result, factor}), false});
}

// ---- shapes

void reshape(OnnxLayer& l) {
  const Shape &from = l.shape_in(), &to = l.shape_out();
  if (from.n != to.n) {
    throw layer_error(l.layer, "it makes {} of {}, and an exported net takes any number of rows",
                      to_string(to), to_string(from));
  }
  const std::string extents = l.graph.integers(l.part("extents"), {-1, to.c, to.h, to.w});
  l.set({l.add("Reshape", {l.in().name, extents}), false});
}

// The row's own axes, in another order.
void permute(OnnxLayer& l) {
  std::vector<int64_t> dims = l.listed<int64_t>("dim");
  const Shape &from = l.shape_in(), &to = l.shape_out();
  if (dims.empty()) dims = {from.c, from.h, from.w};
  dims.insert(dims.begin(), -1);
  const std::string divided =
      l.add_part("divided", "Reshape", {l.in().name, l.graph.integers(l.part("axes"), dims)});
  const std::string moved =
      l.add_part("moved", "Transpose", {divided}, {{"perm", l.listed<int64_t>("order")}});
  const std::string extents = l.graph.integers(l.part("extents"), {-1, to.c, to.h, to.w});
  l.set({l.add("Reshape", {moved, extents}), false});
}

// One transpose of the last two axes where an input is to be transposed.
void matmul(OnnxLayer& l) {
  const auto operand = [&](size_t input, const char* parameter) {
    const std::string x = l.image(input);
    if (l.integer(parameter) == 0) return x;
    return l.add_part(parameter, "Transpose", {x}, {{"perm", std::vector<int64_t>{0, 1, 3, 2}}});
  };
  const std::string a = operand(0, "transpose_a"), b = operand(1, "transpose_b");
  l.set({l.add("MatMul", {a, b}), false});
}

void pad(OnnxLayer& l) {
  const std::string x = l.image();
  const std::string& mode = l.text("mode");
  const std::string pads = l.graph.integers(
      l.part("pads"),
      {0, 0, l.integer("top"), l.integer("left"), 0, 0, l.integer("bottom"), l.integer("right")});
  if (mode == "CONSTANT") {
    const std::string value = l.graph.scalar(l.part("value"), l.number("value"));
    return l.set({l.add("Pad", {x, pads, value}), false});
  }
  l.set({l.add("Pad", {x, pads}, {{"mode", std::string(mode == "EDGE" ? "edge" : "reflect")}}),
         false});
}

void upsample(OnnxLayer& l) {
  const bool is_linear = l.text("mode") == "BILINEAR";
  const std::string places = !is_linear                        ? "asymmetric"
                             : l.integer("align_corners") != 0 ? "align_corners"
                                                               : "half_pixel";
  const std::string none = l.graph.constant(l.part("region"), {0}, {});
  const std::string scales = l.graph.constant(
      l.part("scales"), {4}, {1, 1, float(l.number("scale_h")), float(l.number("scale_w"))});
  l.set({l.add("Resize", {l.image(), none, scales},
               {{"mode", std::string(is_linear ? "linear" : "nearest")},
                {"coordinate_transformation_mode", places},
                {"nearest_mode", std::string("floor")}}),
         false});
}

void softmax(OnnxLayer& l) {
  const int64_t axis = l.integer("axis");
  if (axis == 1) return simple(l, "Softmax", {{"axis", axis}});
  l.set({l.add("Softmax", {l.image()}, {{"axis", axis}}), false});
}

void flatten(OnnxLayer& l) {
  const Shape& to = l.shape_out();
  if (to.h == 1 && to.w == 1) return l.set({l.row(), true});
  reshape(l);
}

// Not the operator Tile, which some runtimes do not have.
void tile(OnnxLayer& l) {
  const std::vector<std::string> inputs(size_t(l.integer("tiles")), l.image());
  l.set({l.add("Concat", inputs, {{"axis", axis_of(l)}}), false});
}

// ---- windows

struct Window {
  OnnxAxes kernel, stride;
  OnnxAxes before, after;  // zeros around the image
};

// The average over a window, to which the zeros around the image count if `counts_padding`, but not
// `beyond`: places after them that the last window reaches.
std::string add_average(OnnxLayer& l, const std::string& x, const Window& window, OnnxAxes beyond,
                        bool counts_padding = true) {
  std::string padded = x;
  OnnxAxes before = window.before, after = window.after;
  if (!counts_padding) {
    beyond = {beyond.h + after.h, beyond.w + after.w};
  } else if (before.h + before.w + after.h + after.w > 0) {
    const std::string pads =
        l.graph.integers(l.part("pads"), {0, 0, before.h, before.w, 0, 0, after.h, after.w});
    padded = l.add_part("Pad", "Pad", {x, pads});
  }
  if (counts_padding) before = {0, 0};
  return l.add_part("AveragePool", "AveragePool", {padded},
                    {{"kernel_shape", std::vector{window.kernel.h, window.kernel.w}},
                     {"strides", std::vector{window.stride.h, window.stride.w}},
                     {"pads", std::vector<int64_t>{before.h, before.w, beyond.h, beyond.w}},
                     {"count_include_pad", int64_t{0}}});
}

// Normalization by neighboring channels, or by the pixels around each.
void lrn(OnnxLayer& l) {
  const int64_t size = l.integer("local_size");
  const double alpha = l.number("alpha"), beta = l.number("beta");
  if (l.text("norm_region") == "ACROSS_CHANNELS") {
    return simple(l, "LRN",
                  {{"alpha", float(alpha)},
                   {"beta", float(beta)},
                   {"bias", float(l.number("k"))},
                   {"size", size}});
  }
  // x * (1 + alpha * mean of the squares around it)^-beta, with zeros around the image
  const std::string x = l.image();
  const std::string squares = l.add_part("squares", "Mul", {x, x});
  const int64_t pad = (size - 1) / 2;
  std::string value =
      add_average(l, squares, {{size, size}, {1, 1}, {pad, pad}, {pad, pad}}, {0, 0});
  for (const auto& [operation, operand] :
       {std::pair{"Mul", alpha}, std::pair{"Add", 1.0}, std::pair{"Pow", -beta}}) {
    const std::string constant = l.graph.scalar(l.part("constant"), operand);
    value = l.add_part(operation, operation, {value, constant});
  }
  l.set({l.add("Mul", {x, value}), false});
}

void pooling(OnnxLayer& l) {
  const bool is_maximum = l.text("pool") == "MAX";
  const std::string x = l.image();
  if (l.integer("global_pooling") != 0) {
    return l.set({l.add(is_maximum ? "GlobalMaxPool" : "GlobalAveragePool", {x}), false});
  }
  const OnnxAxes kernel = l.axes("kernel_size", "kernel", 0);
  const OnnxAxes stride = l.axes("stride", 1), pad = l.axes("pad", 0);
  // Rows and columns that the last windows need after the image. With them the number of windows is
  // not rounded up, which runtimes do in different ways.
  const auto after = [](int64_t windows, int64_t step, int64_t size, int64_t before, int64_t all) {
    return std::max<int64_t>(0, (windows - 1) * step + size - all - before);
  };
  const Shape &in = l.shape_in(), &out = l.shape_out();
  const OnnxAxes end{after(out.h, stride.h, kernel.h, pad.h, in.h),
                     after(out.w, stride.w, kernel.w, pad.w, in.w)};
  if (is_maximum) {
    return l.set({l.add("MaxPool", {x},
                        {{"kernel_shape", std::vector{kernel.h, kernel.w}},
                         {"strides", std::vector{stride.h, stride.w}},
                         {"pads", std::vector{pad.h, pad.w, end.h, end.w}}}),
                  false});
  }
  // An average counts what is inside the padding, but nothing beyond it.
  const OnnxAxes counted{std::min(end.h, pad.h), std::min(end.w, pad.w)};
  const OnnxAxes beyond{end.h - counted.h, end.w - counted.w};
  const bool counts = l.integer("count_padding") != 0;
  l.set({add_average(l, x, {kernel, stride, pad, counted}, beyond, counts), false});
}

struct NamedForm {
  const char* type;
  OnnxForm form;
};

constexpr NamedForm forms[] = {
    {"AbsVal", [](OnnxLayer& l) { simple(l, "Abs"); }},
    {"BNLL", [](OnnxLayer& l) { simple(l, "Softplus"); }},
    {"BatchNorm", batch_norm},
    {"BatchNormScale", batch_norm},
    {"Bias", bias},
    {"Clip", clip},
    {"Concat", concat},
    {"Convolution", convolution},
    {"Crop", crop},
    {"Deconvolution", deconvolution},
    {"Dropout", same},
    {"ELU",
     [](OnnxLayer& l) {
       simple(l, "Elu", {{"alpha", float(l.number("alpha"))}});
     }},
    {"Eltwise", eltwise},
    {"Exp", exp},
    {"Flatten", flatten},
    {"GELU", gelu},
    {"HardSigmoid", [](OnnxLayer& l) { simple(l, "HardSigmoid", hard_slope); }},
    {"HardSwish", hard_swish},
    {"InnerProduct", inner_product},
    {"LRN", lrn},
    {"LayerNorm", layer_norm},
    {"Log", log},
    {"MatMul", matmul},
    {"PReLU", prelu},
    {"Pad", pad},
    {"Permute", permute},
    {"Pooling", pooling},
    {"Power", power},
    {"ReLU", relu},
    {"Reduction", reduction},
    {"Reshape", reshape},
    {"Scale", scale},
    {"SiLU", [](OnnxLayer& l) { sigmoid_times(l, 1); }},
    {"Sigmoid", [](OnnxLayer& l) { simple(l, "Sigmoid"); }},
    {"Slice", slice},
    {"Softmax", softmax},
    {"Split", same},
    {"Swish", [](OnnxLayer& l) { sigmoid_times(l, l.number("beta")); }},
    {"TanH", [](OnnxLayer& l) { simple(l, "Tanh"); }},
    {"Tile", tile},
    {"Upsample", upsample},
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
