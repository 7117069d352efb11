// Operators of elements: functions, and sums, products and others of two values.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "core/base/error.h"
#include "core/formats/onnx_reader/operators.h"

namespace tandem::onnx_operators {
namespace {

// ---- functions

constexpr double no_bound = 3e38;  // as good as none

void power(OnnxMapper& m, const OnnxNode& node, OnnxNetValue& x, double scale, double shift,
           double exponent = 1) {
  if (scale == 1 && shift == 0 && exponent == 1) return;
  Fields fields;
  if (exponent != 1) fields.emplace_back("power", text_of(exponent));
  if (scale != 1) fields.emplace_back("scale", text_of(scale));
  if (shift != 0) fields.emplace_back("shift", text_of(shift));
  const bool prepares = m.is_prepared(x.top);
  apply(m, node, x, "Power", "power_param", fields);
  constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
  if (prepares) m.set_prepared(x.top, exponent == 1 ? scale : unknown, shift);
}

void with_power(OnnxMapper& m, const OnnxNode& node, double scale, double shift, double exponent) {
  OnnxNetValue x = m.value(node, 0);
  power(m, node, x, scale, shift, exponent);
  m.set(node, std::move(x));
}

void same(OnnxMapper& m, const OnnxNode& node) {
  m.set(node, m.value(node, 0));
}

// All values are float32 here.
void cast(OnnxMapper& m, const OnnxNode& node) {
  const int64_t to = node.integer("to", 0);
  if (to != 1 && to != 10 && to != 11 && to != 16) {
    throw error("it makes whole numbers; only floating point is computed");
  }
  same(m, node);
}

double number_of(const OnnxMapper& m, const OnnxNode& node, size_t input, double absent) {
  if (!node.has_input(input)) return absent;
  const OnnxConstant value = m.required(node, input);
  if (value->count() != 1) throw error("input {} must be one number", input);
  return value->at(0);
}

void clip(OnnxMapper& m, const OnnxNode& node) {
  const double min = std::max(-no_bound, number_of(m, node, 1, -no_bound));
  const double max = std::min(no_bound, number_of(m, node, 2, no_bound));
  if (min == 0 && max == no_bound) return simple(m, node, "ReLU");
  simple(m, node, "Clip", "clip_param", {{"min", text_of(min)}, {"max", text_of(max)}});
}

void dropout(OnnxMapper& m, const OnnxNode& node) {
  const double ratio = number_of(m, node, 1, 0.5);
  if (ratio == 0) return same(m, node);
  simple(m, node, "Dropout", "dropout_param", {{"dropout_ratio", text_of(ratio)}});
}

// The recognized form of PyTorch's training: x, the share that is kept, and what divides by it.
void stochastic_depth(OnnxMapper& m, const OnnxNode& node) {
  const double kept = number_of(m, node, 1, 1), divisor = number_of(m, node, 2, kept);
  if (!(kept > 0 && kept <= 1) || std::abs(kept - divisor) > 1e-6) {
    throw error("it keeps {} of the images and divides by {}", kept, divisor);
  }
  if (kept == 1) return same(m, node);
  simple(m, node, "Dropout", "dropout_param",
         {{"dropout_ratio", text_of(1 - kept)}, {"per_image", "true"}});
}

void hard_sigmoid(OnnxMapper& m, const OnnxNode& node) {
  const double alpha = node.number("alpha", 0.2F), beta = node.number("beta", 0.5);
  if (std::abs(alpha - 1.0 / 6) < 1e-6 && beta == 0.5) return simple(m, node, "HardSigmoid");
  OnnxNetValue x = m.value(node, 0);
  power(m, node, x, alpha, beta);
  apply(m, node, x, "Clip", "clip_param", {{"min", "0"}, {"max", "1"}});
  m.set(node, std::move(x));
}

void selu(OnnxMapper& m, const OnnxNode& node) {
  OnnxNetValue x = m.value(node, 0);
  apply(m, node, x, "ELU", "elu_param", {{"alpha", text_of(node.number("alpha", 1.67326319F))}});
  power(m, node, x, node.number("gamma", 1.05070102F), 0);
  m.set(node, std::move(x));
}

void mish(OnnxMapper& m, const OnnxNode& node) {
  const OnnxNetValue x = m.value(node, 0);
  OnnxNetValue factor = x;
  apply(m, node, factor, "BNLL");
  apply(m, node, factor, "TanH");
  Message& layer = m.add(m.layer_name(node), "Eltwise", {x.top, factor.top});
  add_fields(layer, "eltwise_param", {{"operation", "PROD"}});
  factor.top = layer.find("top")->text;
  m.set(node, std::move(factor));
}

void gelu(OnnxMapper& m, const OnnxNode& node) {
  const bool by_tanh = node.operation == "GELUTanh" || node.text("approximate", "none") == "tanh";
  if (by_tanh) return simple(m, node, "GELU", "gelu_param", {{"approximate", "\"tanh\""}});
  simple(m, node, "GELU");
}

// ---- two values

// The values of a constant in the order of memory of what it covers: `dims` are the extents of its
// factors in the order of its axes, `order` the places of these in memory.
std::vector<float> moved(const OnnxTensor& from, const std::vector<int64_t>& dims,
                         const std::vector<size_t>& order) {
  std::vector<float> result(from.count());
  std::vector<size_t> sorted(order.size());
  std::iota(sorted.begin(), sorted.end(), 0);
  std::sort(sorted.begin(), sorted.end(), [&](size_t a, size_t b) { return order[a] < order[b]; });
  std::vector<size_t> stride(dims.size(), 1);  // in memory
  size_t step = 1;
  for (size_t i = sorted.size(); i-- > 0;) {
    stride[sorted[i]] = step;
    step *= size_t(dims[sorted[i]]);
  }
  std::vector<int64_t> index(dims.size(), 0);
  size_t to = 0;
  for (size_t i = 0; i < result.size(); ++i) {
    result[to] = static_cast<float>(from.at(i));
    for (size_t axis = dims.size(); axis-- > 0;) {
      to += stride[axis];
      if (++index[axis] < dims[axis]) break;
      to -= stride[axis] * size_t(dims[axis]);
      index[axis] = 0;
    }
  }
  return result;
}

// x + values or x * values, where values have extents of x or 1, and no more axes.
void with_values(OnnxMapper& m, const OnnxNode& node, OnnxNetValue& x, const OnnxTensor& values,
                 bool is_product, size_t parameter) {
  std::vector<int64_t> extents = values.shape;
  extents.insert(extents.begin(), x.axes.size() - extents.size(), 1);
  std::vector<size_t> covered;
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    if (extents[axis] != 1) covered.push_back(axis);
  }
  for (const size_t axis : covered) {
    if (extents[axis] == x.extent(axis)) continue;
    throw error("a constant of {} with a value of {}: extents must be equal or 1",
                fmt::join(values.shape, "x"), fmt::join(x.extents(), "x"));
  }
  const bool prepares = m.is_prepared(x.top);
  OnnxMapper::Exposed at{x, 1, 0};  // one value for all elements
  if (!covered.empty()) at = m.exposed(x, x.factors_of(covered));
  const std::vector<size_t> factors = at.value.factors_of(covered);
  std::vector<int64_t> dims;
  for (const size_t factor : factors) dims.push_back(at.value.factors[factor]);
  const char* type = is_product ? "Scale" : "Bias";
  Message& layer = m.add(m.layer_name(node, {parameter}), type, {at.value.top});
  add_fields(layer, is_product ? "scale_param" : "bias_param",
             {{"axis", fmt::format("{}", at.axis)}, {"num_axes", fmt::format("{}", at.count)}});
  std::vector<int64_t> shape(at.count == 0 ? 1 : 0, 1);
  for (int64_t i = 0; i < at.count; ++i) shape.push_back(at.value.net[size_t(at.axis - 1 + i)]);
  m.weight(layer, is_product ? "weight" : "bias", shape, moved(values, dims, factors),
           prepares ? nullptr : &values, 0);
  at.value.top = layer.find("top")->text;
  x = std::move(at.value);
  if (prepares) {
    m.set_prepared(x.top, is_product ? values.at(0) : 1, is_product ? 0 : values.at(0));
  }
}

// The values of a constant with a function applied.
template <class Function>
OnnxConstant changed(const OnnxTensor& values, const Function& function) {
  auto result = std::make_shared<OnnxTensor>(values);
  result->is_integer = false;
  result->integers.clear();
  result->floats.resize(values.count());
  for (size_t i = 0; i < values.count(); ++i) {
    result->floats[i] = static_cast<float>(function(values.at(i)));
  }
  return result;
}

// Gives the value as many axes, the new ones first.
void pad_axes(OnnxNetValue& value, size_t rank) {
  if (value.axes.size() < rank) value.axes.insert(value.axes.begin(), rank - value.axes.size(), {});
}

void with_number(OnnxMapper& m, const OnnxNode& node, OnnxNetValue& x, double c,
                 const std::string& operation, bool is_first) {
  if (operation == "Add" || operation == "Sum" || operation == "Mean") power(m, node, x, 1, c);
  if (operation == "Sub") power(m, node, x, is_first ? -1 : 1, is_first ? c : -c);
  if (operation == "Mul") power(m, node, x, c, 0);
  if (operation == "Div") {
    if (is_first) power(m, node, x, 1, 0, -1);
    power(m, node, x, is_first ? c : 1 / c, 0);
  }
  if (operation == "Max" && c == 0) {
    apply(m, node, x, "ReLU");
  } else if (operation == "Max" || operation == "Min") {
    const bool is_bound = std::abs(c) < no_bound;
    const std::string bound = text_of(c), none = text_of(operation == "Max" ? no_bound : -no_bound);
    if (!is_bound) throw error("its constant is {}", c);
    apply(m, node, x, "Clip", "clip_param",
          {{"min", operation == "Max" ? bound : none}, {"max", operation == "Max" ? none : bound}});
  }
  if (operation == "Pow" && is_first) {
    if (!(c > 0)) throw error("its base is {}; a base above 0 is read", c);
    apply(m, node, x, "Exp", "exp_param", {{"base", text_of(c)}});
  } else if (operation == "Pow") {
    power(m, node, x, 1, 0, c);
  }
}

// b with the elements of these of its factors in the order that those of `a` have in memory.
std::vector<size_t> order_like(const std::vector<size_t>& of_a, const std::vector<size_t>& of_b) {
  std::vector<size_t> places(of_a.size());
  std::iota(places.begin(), places.end(), 0);
  std::sort(places.begin(), places.end(), [&](size_t i, size_t k) { return of_a[i] < of_a[k]; });
  std::vector<size_t> order;
  order.reserve(places.size());
  for (const size_t place : places) order.push_back(of_b[place]);
  return order;
}

std::vector<size_t> all_axes(const OnnxNetValue& value) {
  std::vector<size_t> axes(value.axes.size());
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

// Both in one order and in tensors of the same extents.
void align(OnnxMapper& m, OnnxNetValue& a, OnnxNetValue& b) {
  if (!divide_alike(a, b, all_axes(a))) {
    a = m.plain(a, {a.count(), 1, 1});
    const std::vector<int64_t> extents = a.extents();
    a.set_plain(extents);
    b = m.plain(b, a.net);
    b.set_plain(extents);
    return;
  }
  const std::vector<size_t> order = order_like(a.order(), b.order());
  b = m.arranged(b, order, a.net);
}

OnnxNetValue equal_shapes(OnnxMapper& m, const OnnxNode& node, OnnxNetValue a, OnnxNetValue b,
                          const std::string& operation) {
  align(m, a, b);
  Message& layer = m.add(m.layer_name(node), "Eltwise", {a.top, b.top});
  constexpr std::pair<const char*, const char*> names[] = {
      {"Div", "DIV"}, {"Max", "MAX"}, {"Min", "MIN"}, {"Mul", "PROD"}, {"Pow", "POW"}};
  if (operation == "Sub") {
    add_fields(layer, "eltwise_param", {{"coeff", "1"}, {"coeff", "-1"}});
  }
  for (const auto& [onnx, ours] : names) {
    if (operation == onnx) add_fields(layer, "eltwise_param", {{"operation", ours}});
  }
  a.top = layer.find("top")->text;
  return a;
}

// `small` has extents of `x` or 1.
OnnxNetValue with_fewer(OnnxMapper& m, const OnnxNode& node, OnnxNetValue x, OnnxNetValue small,
                        const std::string& operation, bool is_small_first) {
  std::vector<size_t> covered;
  for (size_t axis = 0; axis < small.axes.size(); ++axis) {
    if (small.extent(axis) == x.extent(axis)) {
      if (small.extent(axis) != 1) covered.push_back(axis);
    } else if (small.extent(axis) != 1) {
      throw error("values of {} and {}: the extents of one must be those of the other or 1",
                  fmt::join(x.extents(), "x"), fmt::join(small.extents(), "x"));
    }
  }
  if (!divide_alike(x, small, covered)) {
    small = m.plain(small, {small.count(), 1, 1});
    const std::vector<int64_t> extents = x.extents();
    x = m.plain(x, {x.count(), 1, 1});
    x.set_plain(extents);
  }
  const bool is_product = operation == "Mul" || operation == "Div";
  if (operation == "Sub") power(m, node, is_small_first ? x : small, -1, 0);
  if (operation == "Div") power(m, node, is_small_first ? x : small, 1, 0, -1);
  OnnxMapper::Exposed at = m.exposed(x, x.factors_of(covered), true);
  small = m.arranged(small, order_like(at.value.factors_of(covered), small.factors_of(covered)),
                     {small.count(), 1, 1});
  const char* type = is_product ? "Scale" : "Bias";
  Message& layer = m.add(m.layer_name(node), type, {at.value.top, small.top});
  add_fields(layer, is_product ? "scale_param" : "bias_param", {{"axis", "0"}});
  at.value.top = layer.find("top")->text;
  return at.value;
}

// The extents of both where those of one are 1.
std::vector<int64_t> common(std::vector<int64_t> a, std::vector<int64_t> b) {
  const std::vector<int64_t> of_a = a, of_b = b;
  const size_t rank = std::max(a.size(), b.size());
  a.insert(a.begin(), rank - a.size(), 1);
  b.insert(b.begin(), rank - b.size(), 1);
  for (size_t axis = 0; axis < rank; ++axis) {
    if (a[axis] != b[axis] && a[axis] != 1 && b[axis] != 1) {
      throw error("values of {} and {} do not fit each other", fmt::join(of_a, "x"),
                  fmt::join(of_b, "x"));
    }
    a[axis] = std::max(a[axis], b[axis]);
  }
  return a;
}

OnnxNetValue of_two_values(OnnxMapper& m, const OnnxNode& node, OnnxNetValue a, OnnxNetValue b,
                           const std::string& operation) {
  if (a.extents() == b.extents()) {
    return equal_shapes(m, node, std::move(a), std::move(b), operation);
  }
  const std::vector<int64_t> extents = common(a.extents(), b.extents());
  const bool covers_a = a.extents() == extents, covers_b = b.extents() == extents;
  if (operation == "Max" || operation == "Min" || operation == "Pow") {
    a = m.repeated(std::move(a), extents);
    b = m.repeated(std::move(b), extents);
    return equal_shapes(m, node, std::move(a), std::move(b), operation);
  }
  if (!covers_a && !covers_b) a = m.repeated(std::move(a), extents);
  if (a.count() >= b.count()) {
    return with_fewer(m, node, std::move(a), std::move(b), operation, false);
  }
  return with_fewer(m, node, std::move(b), std::move(a), operation, true);
}

OnnxNetValue of_two(OnnxMapper& m, const OnnxNode& node, OnnxNetValue a, OnnxNetValue b,
                    const std::string& operation) {
  const size_t rank = std::max(a.axes.size(), b.axes.size());
  const std::vector<int64_t> promised = common(a.promised(), b.promised());
  pad_axes(a, rank);
  pad_axes(b, rank);
  a.expanded.clear();
  b.expanded.clear();
  OnnxNetValue result = of_two_values(m, node, std::move(a), std::move(b), operation);
  if (result.extents() != promised) result.expanded = promised;
  return result;
}

}  // namespace

OnnxNetValue with_constant(OnnxMapper& m, const OnnxNode& node, OnnxNetValue x, const OnnxTensor& c,
                           const std::string& operation, size_t parameter, bool is_first) {
  pad_axes(x, c.shape.size());
  const bool is_bound = operation == "Pow" || operation == "Max" || operation == "Min";
  const bool learns = c.is_trained_number() && !m.is_prepared(x.top);
  if (c.count() == 1 && (is_bound || !learns)) {
    if (learns) {
      m.note(fmt::format("{}: its parameter '{}' is a number that keeps its value", node.title(),
                         c.parameter));
    }
    with_number(m, node, x, c.at(0), operation, is_first);
    return x;
  }
  const std::vector<int64_t> extents = common(x.extents(), c.shape);
  x = m.repeated(std::move(x), extents);
  if (is_bound) {
    OnnxNetValue values = value_of_constant(m, node, parameter, x);
    return is_first ? of_two(m, node, std::move(values), std::move(x), operation)
                    : of_two(m, node, std::move(x), std::move(values), operation);
  }
  if (operation == "Sub" && is_first) power(m, node, x, -1, 0);
  if (operation == "Div" && is_first) power(m, node, x, 1, 0, -1);
  OnnxConstant values = std::make_shared<OnnxTensor>(c);
  if (!is_first && operation == "Sub") values = changed(c, [](double v) { return -v; });
  if (!is_first && operation == "Div") values = changed(c, [](double v) { return 1 / v; });
  const bool is_product = operation == "Mul" || operation == "Div";
  with_values(m, node, x, *values, is_product, parameter);
  return x;
}

namespace {

// All inputs from the first on, values and constants.
void combination(OnnxMapper& m, const OnnxNode& node) {
  const std::string& operation = node.operation;
  const bool takes_two = operation == "Sub" || operation == "Div" || operation == "Pow";
  if (takes_two && node.inputs.size() != 2) throw error("it has {} inputs", node.inputs.size());
  std::optional<OnnxNetValue> result;
  OnnxConstant first;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const OnnxConstant c = m.constant(node, i);
    if (c != nullptr && !result) {
      if (first != nullptr) throw error("its first inputs are constant");
      first = c;
    } else if (c != nullptr) {
      if (i == 1) result = m.value(node, 0);
      result = with_constant(m, node, std::move(*result), *c, operation, i);
    } else if (first != nullptr) {
      result = with_constant(m, node, m.value(node, i), *first, operation, i - 1, true);
      first = nullptr;
    } else {
      result = result ? of_two(m, node, std::move(*result), m.operand(node, i), operation)
                      : m.operand(node, i);
    }
  }
  if (!result) throw error("it has no input that is computed");
  if (operation == "Mean") power(m, node, *result, 1 / double(node.inputs.size()), 0);
  m.set(node, std::move(*result));
}

void prelu(OnnxMapper& m, const OnnxNode& node) {
  const OnnxNetValue x = m.value(node, 0);
  const OnnxConstant slopes = m.required(node, 1);
  const bool is_shared = slopes->count() == 1;
  size_t axis = 1;
  while (!is_shared && axis < x.axes.size() && !is_along(*slopes, x, axis)) ++axis;
  if (axis >= x.axes.size()) throw error("it needs one slope, or one for each channel");
  OnnxMapper::Exposed at = m.exposed(x, x.axes[axis], true);
  Message& layer = m.add(m.layer_name(node, {1}), "PReLU", {at.value.top});
  if (is_shared) add_fields(layer, "prelu_param", {{"channel_shared", "true"}});
  m.weight(layer, "weight", {int64_t(slopes->count())}, floats_of(*slopes), slopes.get(), 0);
  at.value.top = layer.find("top")->text;
  m.set(node, std::move(at.value));
}

}  // namespace

const std::vector<NamedOnnxOperator>& elementwise() {
  using M = OnnxMapper;
  using N = OnnxNode;
  static const std::vector<NamedOnnxOperator> table{
      {"", "Abs", [](M& m, const N& n) { simple(m, n, "AbsVal"); }},
      {"", "Add", combination},
      {"", "Cast", cast},
      {"", "Clip", clip},
      {"", "Div", combination},
      {"", "Dropout", dropout},
      {"", "Elu",
       [](M& m, const N& n) {
         simple(m, n, "ELU", "elu_param", {{"alpha", text_of(n.number("alpha", 1))}});
       }},
      {"", "Exp", [](M& m, const N& n) { simple(m, n, "Exp"); }},
      {"", "Gelu", gelu},
      {"", "HardSigmoid", hard_sigmoid},
      {"", "HardSwish", [](M& m, const N& n) { simple(m, n, "HardSwish"); }},
      {"", "Identity", same},
      {"", "LeakyRelu",
       [](M& m, const N& n) {
         simple(m, n, "ReLU", "relu_param",
                {{"negative_slope", text_of(n.number("alpha", 0.01F))}});
       }},
      {"", "Log", [](M& m, const N& n) { simple(m, n, "Log"); }},
      {"", "Max", combination},
      {"", "Mean", combination},
      {"", "Min", combination},
      {"", "Mish", mish},
      {"", "Mul", combination},
      {"", "Neg", [](M& m, const N& n) { with_power(m, n, -1, 0, 1); }},
      {"", "PRelu", prelu},
      {"", "Pow", combination},
      {"", "Reciprocal", [](M& m, const N& n) { with_power(m, n, 1, 0, -1); }},
      {"", "Relu", [](M& m, const N& n) { simple(m, n, "ReLU"); }},
      {"", "Selu", selu},
      {"", "Sigmoid", [](M& m, const N& n) { simple(m, n, "Sigmoid"); }},
      {"", "Softplus", [](M& m, const N& n) { simple(m, n, "BNLL"); }},
      {"", "Sqrt", [](M& m, const N& n) { with_power(m, n, 1, 0, 0.5); }},
      {"", "Sub", combination},
      {"", "Sum", combination},
      {"", "Tanh", [](M& m, const N& n) { simple(m, n, "TanH"); }},
      {"tandem", "GELU", gelu},
      {"tandem", "GELUTanh", gelu},
      {"tandem", "HardSigmoid", [](M& m, const N& n) { simple(m, n, "HardSigmoid"); }},
      {"tandem", "HardSwish", [](M& m, const N& n) { simple(m, n, "HardSwish"); }},
      {"tandem", "SiLU", [](M& m, const N& n) { simple(m, n, "SiLU"); }},
      {"tandem", "StochasticDepth", stochastic_depth},
      {"tandem", "Swish",
       [](M& m, const N& n) {
         simple(m, n, "Swish", "swish_param", {{"beta", text_of(number_of(m, n, 1, 1))}});
       }},
  };
  return table;
}

}  // namespace tandem::onnx_operators
