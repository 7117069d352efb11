// Functions of constants, element by element, and their sums.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "core/base/error.h"
#include "core/formats/onnx_reader/constant_operators.h"

namespace tandem {
namespace onnx_constants {
namespace {

using Unary = double (*)(double);
using Binary = double (*)(double, double);

OnnxConstant unary(const OnnxTensor& x, Unary function) {
  auto result = make(x.shape, x.is_integer);
  for (size_t i = 0; i < result->count(); ++i) set(*result, i, function(x.at(i)));
  return result;
}

// Of all inputs, from the first on.
OnnxConstant combined(const Inputs& inputs, Binary function, bool gives_integers) {
  OnnxConstant result = inputs.at(0);
  for (size_t k = 1; k < inputs.size(); ++k) {
    const Extents shape = broadcast(result->shape, input(inputs, k).shape);
    const OnnxConstant a = spread(*result, shape), b = spread(*inputs[k], shape);
    auto next = make(shape, gives_integers || a->is_integer);
    for (size_t i = 0; i < next->count(); ++i) {
      const double value = function(a->at(i), b->at(i));
      set(*next, i, next->is_integer && !gives_integers ? std::trunc(value) : value);
    }
    result = next;
  }
  return result;
}

// A whole number in an integer of ONNX's type `type`, whose upper bits are lost.
int64_t wrapped(int64_t value, int64_t type) {
  const int bits = type == 2 || type == 3 ? 8 : type == 4 || type == 5 ? 16 : 32;
  if (type != 6 && type != 12 && bits == 32) return value;
  const int64_t range = int64_t{1} << bits, rest = value & (range - 1);
  const bool has_sign = type == 3 || type == 5 || type == 6;
  return has_sign && rest >= range / 2 ? rest - range : rest;
}

OnnxConstant cast(const OnnxNode& node, const Inputs& inputs) {
  const OnnxTensor& x = input(inputs, 0);
  const int64_t to = node.integer("to", 1);
  const bool is_float = to == 1 || to == 10 || to == 11 || to == 16;
  auto result = make(x.shape, !is_float);
  for (size_t i = 0; i < result->count(); ++i) {
    set(*result, i, to == 9 ? double(x.at(i) != 0) : is_float ? x.at(i) : std::trunc(x.at(i)));
    if (!is_float) result->integers[i] = wrapped(result->integers[i], to);
  }
  return result;
}

OnnxConstant constant(const OnnxNode& node, const Inputs&) {
  for (const auto& [name, value] : node.attributes) {
    if (const OnnxConstant tensor = tensor_of(value)) return tensor;
  }
  return nullptr;
}

OnnxConstant where(const OnnxNode&, const Inputs& inputs) {
  const OnnxTensor &a = input(inputs, 1), &b = input(inputs, 2);
  const Extents shape = broadcast(broadcast(input(inputs, 0).shape, a.shape), b.shape);
  const OnnxConstant chosen = spread(*inputs[0], shape);
  const OnnxConstant yes = spread(a, shape), no = spread(b, shape);
  auto result = make(shape, a.is_integer);
  for (size_t i = 0; i < result->count(); ++i) {
    set(*result, i, chosen->at(i) != 0 ? yes->at(i) : no->at(i));
  }
  return result;
}

OnnxConstant summed_up(const OnnxNode& node, const Inputs& inputs) {
  const OnnxTensor &x = input(inputs, 0), &axes = input(inputs, 1);
  const bool is_plain = node.integer("exclusive", 0) == 0 && node.integer("reverse", 0) == 0;
  if (axes.count() != 1 || !is_plain) return nullptr;
  const size_t axis = axis_of(static_cast<int64_t>(axes.at(0)), x.shape.size());
  const auto step = size_t(strides_of(x.shape)[axis]);
  const auto extent = size_t(x.shape[axis]);
  auto result = make(x.shape, x.is_integer);
  for (size_t i = 0; i < x.count(); ++i) {
    const bool is_first = i / step % extent == 0;
    set(*result, i, x.at(i) + (is_first ? 0 : result->at(i - step)));
  }
  return result;
}

OnnxConstant clipped(const OnnxNode&, const Inputs& inputs) {
  const OnnxTensor& x = input(inputs, 0);
  auto result = make(x.shape, x.is_integer);
  for (size_t i = 0; i < result->count(); ++i) {
    double value = x.at(i);
    if (has(inputs, 1) && inputs[1]->count() == 1) value = std::max(value, inputs[1]->at(0));
    if (has(inputs, 2) && inputs[2]->count() == 1) value = std::min(value, inputs[2]->at(0));
    set(*result, i, value);
  }
  return result;
}

struct NamedReduction {
  const char* name;
  double first;
  Binary function;
};
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr NamedReduction reductions[] = {
    {"ReduceMax", -infinity, [](double a, double b) { return std::max(a, b); }},
    {"ReduceMean", 0, [](double a, double b) { return a + b; }},
    {"ReduceMin", infinity, [](double a, double b) { return std::min(a, b); }},
    {"ReduceProd", 1, [](double a, double b) { return a * b; }},
    {"ReduceSum", 0, [](double a, double b) { return a + b; }},
};

OnnxConstant reduced(const OnnxNode& node, const OnnxTensor& x, const Extents& written,
                     const NamedReduction& reduction) {
  const std::vector<size_t> axes = axes_of(written, x.shape.size());
  std::vector<bool> goes(x.shape.size(), axes.empty());
  for (const size_t axis : axes) goes[axis] = true;
  if (axes.empty() && node.integer("noop_with_empty_axes", 0) != 0) return with_shape(x, x.shape);
  Extents kept = x.shape, left;
  for (size_t axis = 0; axis < kept.size(); ++axis) {
    if (goes[axis]) kept[axis] = 1;
    if (!goes[axis] || node.integer("keepdims", 1) != 0) left.push_back(kept[axis]);
  }
  auto result = make(left, x.is_integer);
  std::vector<double> values(result->count(), reduction.first);
  const Extents from = strides_of(x.shape), to = strides_of(kept);
  for (size_t i = 0; i < x.count(); ++i) {
    int64_t at = 0;
    for (size_t axis = 0; axis < kept.size(); ++axis) {
      if (!goes[axis]) at += int64_t(i) / from[axis] % x.shape[axis] * to[axis];
    }
    values[size_t(at)] = reduction.function(values[size_t(at)], x.at(i));
  }
  const bool is_mean = reduction.name == std::string_view("ReduceMean");
  const double count = is_mean ? double(x.count()) / double(values.size()) : 1;
  for (size_t i = 0; i < values.size(); ++i) set(*result, i, values[i] / count);
  return result;
}

struct NamedUnary {
  const char* name;
  Unary function;
};
constexpr NamedUnary unaries[] = {
    {"Abs", [](double x) { return std::abs(x); }},
    {"Ceil", [](double x) { return std::ceil(x); }},
    {"Cos", [](double x) { return std::cos(x); }},
    {"Erf", [](double x) { return std::erf(x); }},
    {"Exp", [](double x) { return std::exp(x); }},
    {"Floor", [](double x) { return std::floor(x); }},
    {"Identity", [](double x) { return x; }},
    {"Log", [](double x) { return std::log(x); }},
    {"Neg", [](double x) { return -x; }},
    {"Not", [](double x) { return double(x == 0); }},
    {"Reciprocal", [](double x) { return 1 / x; }},
    {"Relu", [](double x) { return std::max(0.0, x); }},
    {"Round", [](double x) { return std::nearbyint(x); }},
    {"Sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
    {"Sin", [](double x) { return std::sin(x); }},
    {"Softplus", [](double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }},
    {"Sign", [](double x) { return double(x > 0) - double(x < 0); }},
    {"Sqrt", [](double x) { return std::sqrt(x); }},
    {"Tanh", [](double x) { return std::tanh(x); }},
};

struct NamedBinary {
  const char* name;
  Binary function;
  bool gives_integers;
};
constexpr NamedBinary binaries[] = {
    {"Add", [](double a, double b) { return a + b; }, false},
    {"And", [](double a, double b) { return double(a != 0 && b != 0); }, true},
    {"Div", [](double a, double b) { return a / b; }, false},
    {"Equal", [](double a, double b) { return double(a == b); }, true},
    {"Greater", [](double a, double b) { return double(a > b); }, true},
    {"GreaterOrEqual", [](double a, double b) { return double(a >= b); }, true},
    {"Less", [](double a, double b) { return double(a < b); }, true},
    {"LessOrEqual", [](double a, double b) { return double(a <= b); }, true},
    {"Max", [](double a, double b) { return std::max(a, b); }, false},
    {"Min", [](double a, double b) { return std::min(a, b); }, false},
    {"Mod", [](double a, double b) { return a - b * std::floor(a / b); }, false},
    {"Mul", [](double a, double b) { return a * b; }, false},
    {"Or", [](double a, double b) { return double(a != 0 || b != 0); }, true},
    {"Pow", [](double a, double b) { return std::pow(a, b); }, false},
    {"Sub", [](double a, double b) { return a - b; }, false},
    {"Sum", [](double a, double b) { return a + b; }, false},
    {"Xor", [](double a, double b) { return double((a != 0) != (b != 0)); }, true},
};

// By the operator's name in the tables.
OnnxConstant by_name(const OnnxNode& node, const Inputs& inputs) {
  const OnnxTensor& x = input(inputs, 0);
  for (const NamedUnary& known : unaries) {
    if (node.operation == known.name) return unary(x, known.function);
  }
  for (const NamedReduction& known : reductions) {
    const Extents axes = has(inputs, 1) ? integers_of(*inputs[1]) : Extents{};
    if (node.operation == known.name) return reduced(node, x, axes, known);
  }
  for (const NamedBinary& known : binaries) {
    if (node.operation != known.name) continue;
    if (node.operation == "Mod" && node.integer("fmod", 0) != 0) {
      return combined(
          inputs, [](double a, double b) { return std::fmod(a, b); }, false);
    }
    return combined(inputs, known.function, known.gives_integers);
  }
  return nullptr;
}

}  // namespace

const std::vector<NamedEvaluation>& arithmetic() {
  static const std::vector<NamedEvaluation> table = [] {
    std::vector<NamedEvaluation> result{
        {"Cast", cast},        {"Clip", clipped}, {"Constant", constant},
        {"CumSum", summed_up}, {"Where", where},
    };
    for (const NamedUnary& known : unaries) result.push_back({known.name, by_name});
    for (const NamedBinary& known : binaries) result.push_back({known.name, by_name});
    for (const NamedReduction& known : reductions) result.push_back({known.name, by_name});
    return result;
  }();
  return table;
}

}  // namespace onnx_constants
}  // namespace tandem
