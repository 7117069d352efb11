#include "core/formats/onnx_reader/constants.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/formats/onnx_reader/constant_operators.h"

namespace tandem {
namespace onnx_constants {

std::shared_ptr<OnnxTensor> make(const Extents& shape, bool is_integer) {
  const int64_t count = count_of(shape, max_folded_values);
  if (count < 0) throw error("it would make {} values", fmt::join(shape, "x"));
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

const OnnxTensor& input(const Inputs& inputs, size_t i) {
  if (has(inputs, i)) return *inputs[i];
  throw error("input {} is missing", i);
}

OnnxConstant strided(const OnnxTensor& x, const Extents& shape, const Extents& strides,
                     int64_t start) {
  auto result = make(shape, x.is_integer);
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

Extents broadcast(const Extents& a, const Extents& b) {
  Extents result(std::max(a.size(), b.size()), 1);
  for (size_t i = 0; i < result.size(); ++i) {
    const int64_t of_a = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t of_b = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (of_a != of_b && of_a != 1 && of_b != 1) {
      throw error("{} and {} do not fit each other", fmt::join(a, "x"), fmt::join(b, "x"));
    }
    result[result.size() - 1 - i] = of_a == 1 ? of_b : of_a;
  }
  return result;
}

OnnxConstant spread(const OnnxTensor& x, const Extents& shape) {
  const Extents own = strides_of(x.shape);
  Extents strides(shape.size(), 0);
  for (size_t i = 0; i < x.shape.size(); ++i) {
    const size_t axis = shape.size() - x.shape.size() + i;
    if (x.shape[i] != 1) strides[axis] = own[i];
  }
  return strided(x, shape, strides);
}

OnnxConstant with_shape(const OnnxTensor& x, Extents shape) {
  auto result = std::make_shared<OnnxTensor>(x);
  result->shape = std::move(shape);
  return result;
}

std::vector<size_t> axes_of(const Extents& axes, size_t rank) {
  std::vector<size_t> result;
  for (const int64_t axis : axes) result.push_back(axis_of(axis, rank));
  std::sort(result.begin(), result.end());
  if (std::adjacent_find(result.begin(), result.end()) == result.end()) return result;
  throw error("it names an axis twice");
}

}  // namespace onnx_constants

std::vector<int64_t> integers_of(const OnnxTensor& tensor) {
  if (tensor.is_integer) return tensor.integers;
  std::vector<int64_t> values;
  for (const float value : tensor.floats) values.push_back(std::llround(value));
  return values;
}

namespace {

onnx_constants::Evaluation find_evaluation(const std::string& operation) {
  using namespace onnx_constants;
  for (const auto* table : {&arithmetic(), &layers(), &shapes(), &slices()}) {
    for (const NamedEvaluation& known : *table) {
      if (operation == known.name) return known.evaluate;
    }
  }
  return nullptr;
}

OnnxConstant compute(const OnnxNode& node, const std::vector<OnnxConstant>& inputs) {
  // In training mode statistics are further outputs, which nothing reads.
  const bool may_have_more = node.operation == "BatchNormalization" && !node.outputs.empty();
  const bool has_more = node.outputs.size() != 1 && !may_have_more;
  if (!node.domain.empty() || has_more) return nullptr;
  const auto evaluate = find_evaluation(node.operation);
  return evaluate == nullptr ? nullptr : evaluate(node, inputs);
}

// Operators whose result has the input's values in another order.
constexpr const char* moving[] = {"Cast",    "Flatten", "Gather",    "Identity",
                                  "Reshape", "Squeeze", "Transpose", "Unsqueeze"};

}  // namespace

OnnxBudget::OnnxBudget(const OnnxFile& file) {
  constexpr int64_t times = 4;
  for (const auto& [name, constant] : file.constants) left_ += times * int64_t(constant->count());
}

void OnnxBudget::take(const OnnxTensor& result) {
  left_ -= static_cast<int64_t>(result.count());
  if (left_ < 0) throw error("the constants of the file take too much memory");
}

bool can_be_computed(const std::string& operation) {
  return find_evaluation(operation) != nullptr;
}

OnnxConstant computed(const OnnxNode& node, const std::vector<OnnxConstant>& inputs) {
  const OnnxConstant result = compute(node, inputs);
  if (result == nullptr || node.operation == "Constant") return result;
  const bool keeps =
      node.operation == "Expand" && result->count() == onnx_constants::input(inputs, 0).count();
  const bool moves =
      keeps || std::find(std::begin(moving), std::end(moving), node.operation) != std::end(moving);
  auto named = std::make_shared<OnnxTensor>(*result);
  named->parameter = moves ? onnx_constants::input(inputs, 0).parameter : "";
  named->is_derived = std::any_of(inputs.begin(), inputs.end(), [&](const OnnxConstant& from) {
    if (from == nullptr || from->is_integer) return false;
    const bool changes = !moves || node.operation == "Gather";
    return from->is_derived || (changes && !from->parameter.empty() &&
                                (from->count() > 1 || from->is_trained_number()));
  });
  return named;
}

bool fold_constants(OnnxFile& file) {
  OnnxBudget budget(file);
  const auto is_array = [](const OnnxTensor& one) { return !one.is_integer && one.count() > 1; };
  const bool has_initializers =
      std::any_of(file.constants.begin(), file.constants.end(), [&](const auto& named) {
        return is_array(*named.second) && !named.second->parameter.empty();
      });
  bool takes_them = false;
  const auto folds = [&](const OnnxNode& node) {
    std::vector<OnnxConstant> inputs;
    for (const std::string& name : node.inputs) {
      const auto found = file.constants.find(name);
      if (!name.empty() && found == file.constants.end()) return false;
      inputs.push_back(name.empty() ? nullptr : found->second);
    }
    OnnxConstant result = computed(node, inputs);
    if (result == nullptr) return false;
    if (node.operation != "Constant") {
      budget.take(*result);
    } else if (!has_initializers && is_array(*result)) {
      auto named = std::make_shared<OnnxTensor>(*result);
      named->parameter = node.outputs[0];
      result = std::move(named);
      takes_them = true;
    }
    file.constants[node.outputs[0]] = result;
    return true;
  };
  std::erase_if(file.nodes, [&](const OnnxNode& node) {
    try {
      return folds(node);
    } catch (const Error& reason) {
      throw error("ONNX file '{}' cannot be used: {}: {}", file.path.string(), node.title(),
                  reason.what());
    }
  });
  return takes_them;
}

}  // namespace tandem
