#include "core/formats/onnx_reader/constants.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "core/base/error.h"

namespace tandem {
namespace {

using Extents = std::vector<int64_t>;
using Inputs = std::vector<OnnxConstant>;

constexpr int64_t max_folded_values = int64_t{1} << 27;

std::shared_ptr<OnnxTensor> make(const OnnxNode& node, const Extents& shape, bool is_integer) {
  const int64_t count = count_of(shape, max_folded_values);
  if (count < 0) throw error("{} would make {} values", node.title(), fmt::join(shape, "x"));
  auto tensor = std::make_shared<OnnxTensor>();
  tensor->shape = shape;
  tensor->is_integer = is_integer;
  if (is_integer) {
    tensor->integers.resize(size_t(count));
  } else {
    tensor->floats.resize(size_t(count));
  }
  return tensor;
}

void set(OnnxTensor& tensor, size_t i, double value) {
  if (!tensor.is_integer) {
    tensor.floats[i] = static_cast<float>(value);
    return;
  }
  constexpr double most = 9.2e18;
  tensor.integers[i] = std::isnan(value) ? 0 : static_cast<int64_t>(std::clamp(value, -most, most));
}

void copy(const OnnxTensor& from, size_t i, OnnxTensor& to, size_t k) {
  if (from.is_integer) {
    to.integers[k] = from.integers[i];
  } else {
    to.floats[k] = from.floats[i];
  }
}

Extents strides_of(const Extents& shape) {
  Extents strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

const OnnxTensor& input(const OnnxNode& node, const Inputs& inputs, size_t i) {
  if (i < inputs.size() && inputs[i] != nullptr) return *inputs[i];
  throw error("{} lacks input {}", node.title(), i);
}
bool has(const Inputs& inputs, size_t i) {
  return i < inputs.size() && inputs[i] != nullptr;
}

// Copies, for each element of the result, the element of `x` at `start` + the sum of its indices
// times `strides`.
OnnxConstant strided(const OnnxNode& node, const OnnxTensor& x, const Extents& shape,
                     const Extents& strides, int64_t start = 0) {
  auto result = make(node, shape, x.is_integer);
  const size_t count = result->count();
  Extents index(shape.size(), 0);
  int64_t at = start;
  for (size_t k = 0; k < count; ++k) {
    copy(x, size_t(at), *result, k);
    for (size_t axis = shape.size(); axis-- > 0;) {
      at += strides[axis];
      if (++index[axis] < shape[axis]) break;
      at -= strides[axis] * shape[axis];
      index[axis] = 0;
    }
  }
  return result;
}

Extents broadcast(const OnnxNode& node, const Extents& a, const Extents& b) {
  Extents result(std::max(a.size(), b.size()), 1);
  for (size_t i = 0; i < result.size(); ++i) {
    const int64_t of_a = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t of_b = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (of_a != of_b && of_a != 1 && of_b != 1) {
      throw error("{}: {} and {} do not fit each other", node.title(), fmt::join(a, "x"),
                  fmt::join(b, "x"));
    }
    result[result.size() - 1 - i] = of_a == 1 ? of_b : of_a;
  }
  return result;
}

OnnxConstant spread(const OnnxNode& node, const OnnxTensor& x, const Extents& shape) {
  const Extents own = strides_of(x.shape);
  Extents strides(shape.size(), 0);
  for (size_t i = 0; i < x.shape.size(); ++i) {
    const size_t axis = shape.size() - x.shape.size() + i;
    if (x.shape[i] != 1) strides[axis] = own[i];
  }
  return strided(node, x, shape, strides);
}

OnnxConstant with_shape(const OnnxTensor& x, Extents shape) {
  auto result = std::make_shared<OnnxTensor>(x);
  result->shape = std::move(shape);
  return result;
}

// Error if an axis is there twice.
void require_different(const OnnxNode& node, std::vector<size_t> axes) {
  std::sort(axes.begin(), axes.end());
  if (std::adjacent_find(axes.begin(), axes.end()) == axes.end()) return;
  throw error("{} names an axis twice", node.title());
}

// ---- operators

using Unary = double (*)(double);
using Binary = double (*)(double, double);

OnnxConstant unary(const OnnxNode& node, const OnnxTensor& x, Unary function) {
  auto result = make(node, x.shape, x.is_integer);
  for (size_t i = 0; i < result->count(); ++i) set(*result, i, function(x.at(i)));
  return result;
}

OnnxConstant binary(const OnnxNode& node, const Inputs& inputs, Binary function,
                    bool gives_integers) {
  const Extents shape = broadcast(node, input(node, inputs, 0).shape, input(node, inputs, 1).shape);
  const OnnxConstant a = spread(node, *inputs[0], shape), b = spread(node, *inputs[1], shape);
  auto result = make(node, shape, gives_integers || a->is_integer);
  for (size_t i = 0; i < result->count(); ++i) {
    const double value = function(a->at(i), b->at(i));
    set(*result, i, result->is_integer && !gives_integers ? std::trunc(value) : value);
  }
  return result;
}

OnnxConstant concat(const OnnxNode& node, const Inputs& inputs) {
  const OnnxTensor& first = input(node, inputs, 0);
  const size_t axis = axis_of(node, node.integer("axis", 0), first.shape.size());
  Extents shape = first.shape;
  shape[axis] = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const OnnxTensor& part = input(node, inputs, i);
    Extents expected = part.shape;
    if (expected.size() != shape.size() || part.is_integer != first.is_integer) {
      throw error("{}: its inputs do not fit each other", node.title());
    }
    shape[axis] += expected[axis];
    expected[axis] = shape[axis];
    if (expected != shape) throw error("{}: its inputs do not fit each other", node.title());
  }
  auto result = make(node, shape, first.is_integer);
  const int64_t outer = count_of({shape.begin(), shape.begin() + int64_t(axis)}, max_folded_values);
  size_t k = 0;
  for (int64_t o = 0; o < outer; ++o) {
    for (const OnnxConstant& part : inputs) {
      const size_t each = part->count() / size_t(std::max<int64_t>(1, outer));
      for (size_t i = 0; i < each; ++i) copy(*part, size_t(o) * each + i, *result, k++);
    }
  }
  return result;
}

OnnxConstant gather(const OnnxNode& node, const Inputs& inputs) {
  const OnnxTensor &x = input(node, inputs, 0), &indices = input(node, inputs, 1);
  const size_t axis = axis_of(node, node.integer("axis", 0), x.shape.size());
  Extents shape(x.shape.begin(), x.shape.begin() + int64_t(axis));
  shape.insert(shape.end(), indices.shape.begin(), indices.shape.end());
  shape.insert(shape.end(), x.shape.begin() + int64_t(axis) + 1, x.shape.end());
  auto result = make(node, shape, x.is_integer);
  const int64_t inner = strides_of(x.shape)[axis], extent = x.shape[axis];
  const int64_t outer =
      count_of({x.shape.begin(), x.shape.begin() + int64_t(axis)}, max_folded_values);
  size_t k = 0;
  for (int64_t o = 0; o < outer; ++o) {
    for (size_t i = 0; i < indices.count(); ++i) {
      const auto written = static_cast<int64_t>(indices.at(i));
      const int64_t index = written < 0 ? written + extent : written;
      if (index < 0 || index >= extent) {
        throw error("{}: index {} is outside the extent {}", node.title(), written, extent);
      }
      for (int64_t e = 0; e < inner; ++e) {
        copy(x, size_t((o * extent + index) * inner + e), *result, k++);
      }
    }
  }
  return result;
}

OnnxConstant slice(const OnnxNode& node, const Inputs& inputs) {
  const OnnxTensor& x = input(node, inputs, 0);
  const Extents starts = integers_of(input(node, inputs, 1));
  const Extents ends = integers_of(input(node, inputs, 2));
  Extents axes = has(inputs, 3) ? integers_of(*inputs[3]) : Extents(starts.size());
  if (!has(inputs, 3)) std::iota(axes.begin(), axes.end(), 0);
  const Extents steps = has(inputs, 4) ? integers_of(*inputs[4]) : Extents(starts.size(), 1);
  if (ends.size() != starts.size() || axes.size() != starts.size() ||
      steps.size() != starts.size()) {
    throw error("{}: its starts, ends, axes and steps are of different numbers", node.title());
  }
  Extents shape = x.shape, strides = strides_of(x.shape);
  int64_t first = 0;
  std::vector<size_t> all;
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t axis = axis_of(node, axes[i], shape.size());
    all.push_back(axis);
    const OnnxRange range = range_of(starts[i], ends[i], steps[i], x.shape[axis]);
    shape[axis] = range.count;
    first += range.start * strides[axis];
    strides[axis] *= range.step;
  }
  require_different(node, all);
  return strided(node, x, shape, strides, first);
}

OnnxConstant transpose(const OnnxNode& node, const OnnxTensor& x) {
  Extents order = node.integers("perm");
  if (order.empty()) {
    for (size_t i = x.shape.size(); i-- > 0;) order.push_back(int64_t(i));
  }
  if (order.size() != x.shape.size()) throw error("{}: perm does not fit", node.title());
  const Extents own = strides_of(x.shape);
  Extents shape, strides;
  std::vector<size_t> all;
  for (const int64_t axis : order) {
    all.push_back(axis_of(node, axis, own.size()));
    shape.push_back(x.shape[all.back()]);
    strides.push_back(own[all.back()]);
  }
  require_different(node, all);
  return strided(node, x, shape, strides);
}

OnnxConstant tiled(const OnnxNode& node, const Inputs& inputs) {
  const OnnxTensor& x = input(node, inputs, 0);
  const Extents times = integers_of(input(node, inputs, 1));
  if (times.size() != x.shape.size()) throw error("{}: repeats do not fit", node.title());
  // Each axis is one of repeats, which moves nothing, and its own.
  const Extents own = strides_of(x.shape);
  Extents shape, divided, strides;
  for (size_t axis = 0; axis < times.size(); ++axis) {
    divided.insert(divided.end(), {times[axis], x.shape[axis]});
    strides.insert(strides.end(), {0, own[axis]});
    if (count_of({times[axis], x.shape[axis]}, max_folded_values) < 0) {
      throw error("{}: it repeats {} times", node.title(), times[axis]);
    }
    shape.push_back(times[axis] * x.shape[axis]);
  }
  return with_shape(*strided(node, x, divided, strides), shape);
}

OnnxConstant cast(const OnnxNode& node, const OnnxTensor& x) {
  const int64_t to = node.integer("to", 1);
  const bool is_float = to == 1 || to == 10 || to == 11 || to == 16;
  auto result = make(node, x.shape, !is_float);
  for (size_t i = 0; i < result->count(); ++i) {
    set(*result, i, to == 9 ? double(x.at(i) != 0) : is_float ? x.at(i) : std::trunc(x.at(i)));
  }
  return result;
}

OnnxConstant filled(const OnnxNode& node, const Extents& shape) {
  const auto found = node.attributes.find("value");
  const OnnxConstant* value =
      found == node.attributes.end() ? nullptr : std::get_if<OnnxConstant>(&found->second);
  const bool is_integer = value != nullptr && (*value)->is_integer;
  auto result = make(node, shape, is_integer);
  const double fill = value != nullptr && (*value)->count() == 1 ? (*value)->at(0) : 0;
  for (size_t i = 0; i < result->count(); ++i) set(*result, i, fill);
  return result;
}

OnnxConstant counted(const OnnxNode& node, const Inputs& inputs) {
  for (size_t i = 0; i < 3; ++i) {
    if (input(node, inputs, i).count() != 1)
      throw error("{}: input {} is no number", node.title(), i);
  }
  const double start = input(node, inputs, 0).at(0), limit = input(node, inputs, 1).at(0);
  const double delta = input(node, inputs, 2).at(0);
  const double count = delta == 0 ? -1 : std::ceil((limit - start) / delta);
  if (!(count >= 0 && count <= double(max_folded_values)))
    throw error("{} has no end", node.title());
  auto result = make(node, {static_cast<int64_t>(count)}, inputs[0]->is_integer);
  for (size_t i = 0; i < result->count(); ++i) set(*result, i, start + double(i) * delta);
  return result;
}

OnnxConstant constant(const OnnxNode& node) {
  for (const auto& [name, value] : node.attributes) {
    if (const auto* tensor = std::get_if<OnnxConstant>(&value)) return *tensor;
    auto result = std::make_shared<OnnxTensor>();
    if (const auto* number = std::get_if<float>(&value)) {
      result->floats = {*number};
    } else if (const auto* whole = std::get_if<int64_t>(&value)) {
      result->is_integer = true;
      result->integers = {*whole};
    } else if (const auto* numbers = std::get_if<std::vector<float>>(&value)) {
      result->shape = {int64_t(numbers->size())};
      result->floats = *numbers;
    } else if (const auto* integers = std::get_if<Extents>(&value)) {
      result->shape = {int64_t(integers->size())};
      result->is_integer = true;
      result->integers = *integers;
    } else {
      continue;
    }
    return result;
  }
  return nullptr;
}

OnnxConstant where(const OnnxNode& node, const Inputs& inputs) {
  const OnnxTensor &a = input(node, inputs, 1), &b = input(node, inputs, 2);
  const Extents shape =
      broadcast(node, broadcast(node, input(node, inputs, 0).shape, a.shape), b.shape);
  const OnnxConstant chosen = spread(node, *inputs[0], shape);
  const OnnxConstant yes = spread(node, a, shape), no = spread(node, b, shape);
  auto result = make(node, shape, a.is_integer);
  for (size_t i = 0; i < result->count(); ++i) {
    set(*result, i, chosen->at(i) != 0 ? yes->at(i) : no->at(i));
  }
  return result;
}

OnnxConstant product(const OnnxNode& node, const OnnxTensor& x) {
  double value = 1;
  for (size_t i = 0; i < x.count(); ++i) value *= x.at(i);
  auto result = make(node, {}, x.is_integer);
  set(*result, 0, value);
  return result;
}

// Where the slice begins that row `row` of the indices names.
int64_t place_of(const OnnxNode& node, const OnnxTensor& x, const OnnxTensor& indices, size_t row,
                 const Extents& strides) {
  const auto depth = size_t(indices.shape.back());
  int64_t at = 0;
  for (size_t axis = 0; axis < depth; ++axis) {
    const auto written = static_cast<int64_t>(indices.at(row * depth + axis));
    const int64_t index = written < 0 ? written + x.shape[axis] : written;
    if (index < 0 || index >= x.shape[axis]) {
      throw error("{}: index {} is outside the extent {}", node.title(), written, x.shape[axis]);
    }
    at += index * strides[axis];
  }
  return at;
}

// x with slices replaced: the last axis of the indices has an index for each of the first axes.
OnnxConstant scattered(const OnnxNode& node, const Inputs& inputs) {
  const OnnxTensor &x = input(node, inputs, 0), &indices = input(node, inputs, 1),
                   &updates = input(node, inputs, 2);
  const size_t depth = indices.shape.empty() ? 0 : size_t(indices.shape.back());
  const auto rows = int64_t(depth == 0 ? 0 : indices.count() / depth);
  if (depth == 0 || depth > x.shape.size() || updates.is_integer != x.is_integer) {
    throw error("{}: its inputs do not fit each other", node.title());
  }
  const Extents strides = strides_of(x.shape);
  const int64_t each = strides[depth - 1];
  if (int64_t(updates.count()) != rows * each) {
    throw error("{}: its inputs do not fit each other", node.title());
  }
  auto result = std::make_shared<OnnxTensor>(x);
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t at = place_of(node, x, indices, size_t(row), strides);
    for (int64_t i = 0; i < each; ++i) {
      copy(updates, size_t(row * each + i), *result, size_t(at + i));
    }
  }
  return result;
}

// The slices of x that the last axis of the indices names.
OnnxConstant gathered(const OnnxNode& node, const Inputs& inputs) {
  const OnnxTensor &x = input(node, inputs, 0), &indices = input(node, inputs, 1);
  const size_t depth = indices.shape.empty() ? 0 : size_t(indices.shape.back());
  if (depth == 0 || depth > x.shape.size() || node.integer("batch_dims", 0) != 0) return nullptr;
  const Extents strides = strides_of(x.shape);
  const int64_t each = strides[depth - 1];
  Extents shape(indices.shape.begin(), indices.shape.end() - 1);
  shape.insert(shape.end(), x.shape.begin() + int64_t(depth), x.shape.end());
  auto result = make(node, shape, x.is_integer);
  for (size_t row = 0; row < indices.count() / depth; ++row) {
    const int64_t at = place_of(node, x, indices, row, strides);
    for (int64_t i = 0; i < each; ++i) {
      copy(x, size_t(at + i), *result, row * size_t(each) + size_t(i));
    }
  }
  return result;
}

OnnxConstant summed_up(const OnnxNode& node, const Inputs& inputs) {
  const OnnxTensor &x = input(node, inputs, 0), &axes = input(node, inputs, 1);
  const bool is_plain = node.integer("exclusive", 0) == 0 && node.integer("reverse", 0) == 0;
  if (axes.count() != 1 || !is_plain) return nullptr;
  const size_t axis = axis_of(node, static_cast<int64_t>(axes.at(0)), x.shape.size());
  const auto step = size_t(strides_of(x.shape)[axis]);
  const auto extent = size_t(x.shape[axis]);
  auto result = make(node, x.shape, x.is_integer);
  for (size_t i = 0; i < x.count(); ++i) {
    const bool is_first = i / step % extent == 0;
    set(*result, i, x.at(i) + (is_first ? 0 : result->at(i - step)));
  }
  return result;
}

// Matrices of b are the same for all of a.
OnnxConstant multiplied(const OnnxNode& node, const Inputs& inputs) {
  const OnnxTensor &a = input(node, inputs, 0), &b = input(node, inputs, 1);
  if (a.shape.empty() || b.shape.size() != 2 || a.shape.back() != b.shape[0]) return nullptr;
  Extents shape = a.shape;
  const auto k = size_t(b.shape[0]), n = size_t(b.shape[1]);
  shape.back() = b.shape[1];
  auto result = make(node, shape, false);
  for (size_t row = 0; k > 0 && row < a.count() / k; ++row) {
    for (size_t column = 0; column < n; ++column) {
      double sum = 0;
      for (size_t i = 0; i < k; ++i) sum += a.at(row * k + i) * b.at(i * n + column);
      set(*result, row * n + column, sum);
    }
  }
  return result;
}

OnnxConstant clipped(const OnnxNode& node, const Inputs& inputs) {
  const OnnxTensor& x = input(node, inputs, 0);
  auto result = make(node, x.shape, x.is_integer);
  for (size_t i = 0; i < result->count(); ++i) {
    double value = x.at(i);
    if (has(inputs, 1) && inputs[1]->count() == 1) value = std::max(value, inputs[1]->at(0));
    if (has(inputs, 2) && inputs[2]->count() == 1) value = std::min(value, inputs[2]->at(0));
    set(*result, i, value);
  }
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
    {"Softplus", [](double x) { return std::log1p(std::exp(x)); }},
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
    {"Less", [](double a, double b) { return double(a < b); }, true},
    {"Max", [](double a, double b) { return std::max(a, b); }, false},
    {"Min", [](double a, double b) { return std::min(a, b); }, false},
    {"Mod", [](double a, double b) { return a - b * std::floor(a / b); }, false},
    {"Mul", [](double a, double b) { return a * b; }, false},
    {"Or", [](double a, double b) { return double(a != 0 || b != 0); }, true},
    {"Pow", [](double a, double b) { return std::pow(a, b); }, false},
    {"Sub", [](double a, double b) { return a - b; }, false},
};

using Evaluation = OnnxConstant (*)(const OnnxNode&, const Inputs&);
struct NamedEvaluation {
  const char* name;
  Evaluation evaluate;
};
constexpr NamedEvaluation evaluations[] = {
    {"Clip", clipped},
    {"Cast", [](const OnnxNode& n, const Inputs& in) { return cast(n, input(n, in, 0)); }},
    {"Concat", concat},
    {"Constant", [](const OnnxNode& n, const Inputs&) { return constant(n); }},
    {"ConstantOfShape",
     [](const OnnxNode& n, const Inputs& in) { return filled(n, integers_of(input(n, in, 0))); }},
    {"CumSum", summed_up},
    {"Expand",
     [](const OnnxNode& n, const Inputs& in) {
       const OnnxTensor& x = input(n, in, 0);
       return spread(n, x, broadcast(n, x.shape, integers_of(input(n, in, 1))));
     }},
    {"Gather", gather},
    {"GatherND", gathered},
    {"MatMul", multiplied},
    {"Range", counted},
    {"ReduceProd", [](const OnnxNode& n, const Inputs& in) { return product(n, input(n, in, 0)); }},
    {"Reshape",
     [](const OnnxNode& n, const Inputs& in) {
       const OnnxTensor& x = input(n, in, 0);
       return with_shape(x, reshaped(n, x.shape, integers_of(input(n, in, 1))));
     }},
    {"ScatterND", scattered},
    {"Shape",
     [](const OnnxNode& n, const Inputs& in) { return shape_constant(n, input(n, in, 0).shape); }},
    {"Slice", slice},
    {"Squeeze",
     [](const OnnxNode& n, const Inputs& in) {
       const OnnxTensor& x = input(n, in, 0);
       Extents shape = x.shape;
       if (!has(in, 1)) {
         std::erase(shape, 1);
         return with_shape(x, shape);
       }
       std::vector<bool> goes(shape.size());
       for (const int64_t axis : integers_of(*in[1])) goes[axis_of(n, axis, shape.size())] = true;
       shape.clear();
       for (size_t i = 0; i < goes.size(); ++i) {
         if (!goes[i]) shape.push_back(x.shape[i]);
       }
       return with_shape(x, reshaped(n, x.shape, shape));
     }},
    {"Tile", tiled},
    {"Transpose",
     [](const OnnxNode& n, const Inputs& in) { return transpose(n, input(n, in, 0)); }},
    {"Unsqueeze",
     [](const OnnxNode& n, const Inputs& in) {
       const OnnxTensor& x = input(n, in, 0);
       Extents shape = x.shape;
       for (const size_t axis : unsqueezed_axes(n, integers_of(input(n, in, 1)), shape.size())) {
         shape.insert(shape.begin() + int64_t(axis), 1);
       }
       return with_shape(x, shape);
     }},
    {"Where", where},
};

template <class Table>
const auto* find(const Table& table, const std::string& name) {
  const auto found = std::find_if(std::begin(table), std::end(table),
                                  [&](const auto& entry) { return name == entry.name; });
  return found == std::end(table) ? nullptr : &*found;
}

}  // namespace

std::vector<int64_t> integers_of(const OnnxTensor& tensor) {
  if (tensor.is_integer) return tensor.integers;
  std::vector<int64_t> values;
  for (const float value : tensor.floats) values.push_back(std::llround(value));
  return values;
}

OnnxConstant shape_constant(const OnnxNode& node, const std::vector<int64_t>& extents) {
  const auto rank = static_cast<int64_t>(extents.size());
  const OnnxRange range = range_of(node.integer("start", 0), node.integer("end", rank), 1, rank);
  auto result = make(node, {range.count}, true);
  std::copy_n(extents.begin() + range.start, range.count, result->integers.begin());
  return result;
}

std::vector<int64_t> reshaped(const OnnxNode& node, const std::vector<int64_t>& from,
                              std::vector<int64_t> to) {
  const std::string written = fmt::format("{}", fmt::join(to, "x"));
  const int64_t all = count_of(from, max_folded_values);
  int64_t* free = nullptr;
  for (size_t i = 0; i < to.size(); ++i) {
    if (to[i] == 0 && i < from.size() && node.integer("allowzero", 0) == 0) to[i] = from[i];
    if (to[i] == -1 && free == nullptr) free = &to[i];
  }
  if (free != nullptr) {
    *free = 1;
    const int64_t others = count_of(to, max_folded_values);
    if (others > 0) *free = all / others;
  }
  if (all >= 0 && count_of(to, max_folded_values) == all) return to;
  throw error(
      "{} makes {} of {}, which has another number of values (a file for a fixed batch "
      "above 1 must be exported with batch 1 or any batch)",
      node.title(), written, fmt::join(from, "x"));
}

size_t axis_of(const OnnxNode& node, int64_t axis, size_t rank) {
  const auto axes = static_cast<int64_t>(rank);
  if (axis >= -axes && axis < axes) return size_t(axis < 0 ? axis + axes : axis);
  throw error("{}: axis {} does not exist, its input has {} axes", node.title(), axis, rank);
}

std::vector<size_t> unsqueezed_axes(const OnnxNode& node, const std::vector<int64_t>& axes,
                                    size_t rank) {
  std::vector<size_t> sorted;
  sorted.reserve(axes.size());
  for (const int64_t axis : axes) sorted.push_back(axis_of(node, axis, rank + axes.size()));
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

OnnxRange range_of(int64_t start, int64_t end, int64_t step, int64_t extent) {
  OnnxRange range;
  range.step = step == 0 ? 1 : std::clamp<int64_t>(step, -extent - 1, extent + 1);
  const bool down = range.step < 0;
  const auto place = [&](int64_t at) {
    if (at < 0) at = std::max<int64_t>(at, -extent - 1) + extent;
    return down ? std::clamp<int64_t>(at, -1, extent - 1) : std::clamp<int64_t>(at, 0, extent);
  };
  range.start = place(start);
  const int64_t length = down ? range.start - place(end) : place(end) - range.start;
  const int64_t step_size = std::abs(range.step);
  range.count = std::max<int64_t>(0, (length + step_size - 1) / step_size);
  return range;
}

namespace {

OnnxConstant compute(const OnnxNode& node, const std::vector<OnnxConstant>& inputs) {
  if (!node.domain.empty() || node.outputs.size() != 1) return nullptr;
  if (const auto* found = find(unaries, node.operation)) {
    return unary(node, input(node, inputs, 0), found->function);
  }
  if (const auto* found = find(binaries, node.operation)) {
    if (inputs.size() == 2) return binary(node, inputs, found->function, found->gives_integers);
    return nullptr;
  }
  const auto* found = find(evaluations, node.operation);
  return found == nullptr ? nullptr : found->evaluate(node, inputs);
}

// Operators whose result has the input's values in another order.
constexpr const char* moving[] = {"Cast",    "Gather",    "Identity", "Reshape",
                                  "Squeeze", "Transpose", "Unsqueeze"};

}  // namespace

void OnnxBudget::take(const OnnxNode& node, const OnnxTensor& result) {
  left_ -= static_cast<int64_t>(result.count());
  if (left_ < 0) throw error("{}: the constants of the file take too much memory", node.title());
}

bool can_be_computed(const std::string& operation) {
  return find(unaries, operation) != nullptr || find(binaries, operation) != nullptr ||
         find(evaluations, operation) != nullptr;
}

OnnxConstant computed(const OnnxNode& node, const std::vector<OnnxConstant>& inputs) {
  const OnnxConstant result = compute(node, inputs);
  if (result == nullptr || node.operation == "Constant") return result;
  const bool moves =
      std::find(std::begin(moving), std::end(moving), node.operation) != std::end(moving);
  auto named = std::make_shared<OnnxTensor>(*result);
  named->parameter = moves ? input(node, inputs, 0).parameter : "";
  named->is_derived = std::any_of(inputs.begin(), inputs.end(), [&](const OnnxConstant& from) {
    if (from == nullptr || from->is_integer) return false;
    const bool changes = !moves || node.operation == "Gather";
    return from->is_derived || (changes && !from->parameter.empty() && from->count() > 1);
  });
  return named;
}

void fold_constants(OnnxFile& file) {
  OnnxBudget budget;
  std::erase_if(file.nodes, [&](const OnnxNode& node) {
    std::vector<OnnxConstant> inputs;
    for (const std::string& name : node.inputs) {
      const auto found = file.constants.find(name);
      if (!name.empty() && found == file.constants.end()) return false;
      inputs.push_back(name.empty() ? nullptr : found->second);
    }
    const OnnxConstant result = computed(node, inputs);
    if (result == nullptr) return false;
    if (node.operation != "Constant") budget.take(node, *result);
    file.constants[node.outputs[0]] = result;
    return true;
  });
}

}  // namespace tandem
