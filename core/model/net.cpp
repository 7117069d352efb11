#include "core/model/net.h"

#include <algorithm>

#include "core/model/layer_calls.h"

namespace tandem {

std::string Layer::title() const {
  return fmt::format("layer '{}' ({})", name, type == nullptr ? "?" : type->name);
}

bool Layer::may_take_gradient(size_t input) const {
  if (has(TANDEM_METRIC) || has(TANDEM_NO_DATA_GRADIENT)) return false;
  return input != 1 || !(has(TANDEM_SECOND_INPUT_IS_LABEL) || has(TANDEM_SECOND_INPUT_IS_SHAPE));
}

std::vector<Shape> Net::shapes(int64_t rows) const {
  if (rows < 1) throw error("net '{}': a share of {} rows is empty", name, rows);
  std::vector<Shape> result(tensors.size());
  if (rows == batch) {  // as it was built: plans ask this for every task
    for (size_t i = 0; i < result.size(); ++i) result[i] = tensors[i].shape;
    return result;
  }
  std::vector<int> fed = more_inputs;
  fed.insert(fed.end(), {data, label});
  for (const int input : fed) {
    if (input < 0) continue;
    result[static_cast<size_t>(input)] = tensors[static_cast<size_t>(input)].shape;
    result[static_cast<size_t>(input)].n = rows;
  }
  std::vector<Shape> inputs;
  for (const Layer& layer : layers) {
    inputs.clear();
    for (const int input : layer.inputs) inputs.push_back(result[static_cast<size_t>(input)]);
    const std::vector<Shape> outputs = output_shapes(layer, phase, inputs);
    for (size_t i = 0; i < outputs.size(); ++i) {
      result[static_cast<size_t>(layer.outputs[i])] = outputs[i];
    }
  }
  return result;
}

tandem_layer_cost Net::cost(int layer, int64_t rows) const {
  const Layer& asked = layers.at(static_cast<size_t>(layer));
  std::vector<Shape> inputs;
  for (const int input : asked.inputs) {
    inputs.push_back(tensors[static_cast<size_t>(input)].shape);
  }
  // Plans ask this for every task: of the other layers only where rows are no rows of the batch.
  const auto has_rows = [this](const Shape& shape) { return shape.n == batch; };
  if (rows >= 1 && std::all_of(inputs.begin(), inputs.end(), has_rows)) {
    for (Shape& input : inputs) input.n = rows;
    return layer_cost(asked, phase, inputs);
  }
  const std::vector<Shape> all = shapes(rows);
  for (size_t i = 0; i < inputs.size(); ++i) inputs[i] = all[static_cast<size_t>(asked.inputs[i])];
  return layer_cost(asked, phase, inputs);
}

tandem_layer_statistics Net::statistics(int layer) const {
  const Layer& asked = layers.at(static_cast<size_t>(layer));
  std::vector<Shape> inputs;
  for (const int input : asked.inputs) inputs.push_back(tensors[static_cast<size_t>(input)].shape);
  return layer_statistics(asked, phase, inputs);
}

int Net::values_of(int tensor) const {
  for (;;) {
    const Tensor& t = tensors[static_cast<size_t>(tensor)];
    if (t.alias_of < 0 && t.view_of < 0) return tensor;
    tensor = t.alias_of >= 0 ? t.alias_of : t.view_of;
  }
}

int Net::gradient_of(int tensor) const {
  const int root = tensors[static_cast<size_t>(tensor)].alias_of;
  return root >= 0 ? root : tensor;
}

bool Net::makes_views(int layer) const {
  const std::vector<int>& outputs = layers[static_cast<size_t>(layer)].outputs;
  return !outputs.empty() && std::all_of(outputs.begin(), outputs.end(), [this](int output) {
    return tensors[static_cast<size_t>(output)].view_of >= 0;
  });
}

int Net::fused_layer(int layer) const {
  const Layer& maker = layers[static_cast<size_t>(layer)];
  if (maker.activation == TANDEM_ACTIVATION_NONE) return -1;
  return tensors[static_cast<size_t>(maker.outputs[0])].consumers.at(0);
}

void Net::separate_activations() {
  for (Layer& layer : layers) {
    layer.activation = TANDEM_ACTIVATION_NONE;
    layer.fused_into = -1;
  }
}

const char* activation_name(int32_t activation) {
  return activation == TANDEM_ACTIVATION_RELU ? "relu" : "no activation";
}

int Net::find_layer(const std::string& layer_name) const {
  for (size_t i = 0; i < layers.size(); ++i) {
    if (layers[i].name == layer_name) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace tandem
