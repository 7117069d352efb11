#include "core/formats/onnx_reader/operators.h"

#include "core/base/error.h"

namespace tandem {

OnnxOperator find_onnx_operator(const std::string& domain, const std::string& name) {
  using namespace onnx_operators;
  for (const auto* table :
       {&convolutions(), &parts(), &sizes(), &weighted(), &elementwise(), &windows(), &shapes()}) {
    for (const NamedOnnxOperator& known : *table) {
      if (domain == known.domain && name == known.name) return known.map;
    }
  }
  return nullptr;
}

namespace onnx_operators {

std::string text_of(double value) {
  return fmt::format("{:.9g}", value);
}

std::string whole(int64_t value) {
  return fmt::format("{}", value);
}

std::vector<float> floats_of(const OnnxTensor& tensor) {
  if (!tensor.is_integer) return tensor.floats;
  return {tensor.integers.begin(), tensor.integers.end()};
}

std::vector<float> channel_values(const OnnxMapper& m, const OnnxNode& node, size_t input,
                                  int64_t channels) {
  if (!node.has_input(input)) return {};
  const OnnxConstant values = m.required(node, input);
  if (int64_t(values->count()) == channels) return floats_of(*values);
  throw error("input {} has {} values for {} channels", input, values->count(), channels);
}

void add_filler(Message& block, const char* name, const char* type) {
  block.add_block(name).add("type", type, true);
}

bool is_along(const OnnxTensor& constant, const OnnxNetValue& x, size_t axis) {
  const size_t rank = x.axes.size();
  return constant.shape.size() + axis >= rank && constant.shape.size() <= rank &&
         constant.shape[constant.shape.size() + axis - rank] == x.extent(axis) &&
         int64_t(constant.count()) == x.extent(axis);
}

void add_fields(Message& layer, const char* block, const Fields& fields) {
  if (fields.empty()) return;
  Message& to = layer.add_block(block);
  for (const auto& [name, value] : fields) to.add(name, value);
}

void apply(OnnxMapper& mapper, const OnnxNode& node, OnnxNetValue& value, const char* type,
           const char* block, const Fields& fields) {
  Message& layer = mapper.add(mapper.layer_name(node), type, {value.top});
  value.top = layer.find("top")->text;
  add_fields(layer, block, fields);
}

void simple(OnnxMapper& mapper, const OnnxNode& node, const char* type, const char* block,
            const Fields& fields) {
  OnnxNetValue value = mapper.value(node, 0);
  apply(mapper, node, value, type, block, fields);
  mapper.set(node, std::move(value));
}

}  // namespace onnx_operators
}  // namespace tandem
