#include "core/model/net/net.h"

#include <algorithm>

#include "core/model/net/layer_calls.h"
#include "core/plugin/layer_questions.h"

namespace tandem {

std::string Layer::title() const {
  if (!joined_scale.empty()) {
    return fmt::format("layer '{}' (BatchNorm, with '{}')", name, joined_scale);
  }
  return fmt::format("layer '{}' ({})", name, type == nullptr ? "?" : type->name);
}

bool Layer::backward_reads_inputs() const {
  return has(TANDEM_BACKWARD_READS_INPUTS) || activation_before != TANDEM_ACTIVATION_NONE;
}

bool Layer::may_take_gradient(size_t input) const {
  return takes_gradient(*type, input);
}

std::vector<Shape> Net::shapes(int64_t rows) const {
  if (rows < 1) throw error("net '{}': a batch of {} rows is empty", name, rows);
  std::vector<Shape> result(tensors.size());
  if (rows == batch) {  // as it was built; plans ask this for every task
    for (size_t i = 0; i < result.size(); ++i) result[i] = tensors[i].shape;
    return result;
  }
  std::vector<int> fed = more_inputs;
  fed.insert(fed.end(), {data, label});
  for (const int input : fed) {
    if (input < 0) continue;
    result[size_t(input)] = tensors[size_t(input)].shape;
    result[size_t(input)].n = rows;
  }
  std::vector<Shape> inputs;
  for (const Layer& layer : layers) {
    inputs.clear();
    for (const int input : layer.inputs) inputs.push_back(result[size_t(input)]);
    const std::vector<Shape> outputs = output_shapes(layer, phase, inputs);
    for (size_t i = 0; i < outputs.size(); ++i) {
      result[size_t(layer.outputs[i])] = outputs[i];
    }
  }
  return result;
}

tandem_layer_cost Net::cost(int layer, int64_t rows) const {
  const Layer& asked = layers.at(size_t(layer));
  std::vector<Shape> inputs = input_shapes(*this, asked);
  // Plans ask this for every task. Other layers are needed only where rows are not rows of the
  // batch.
  const auto has_rows = [this](const Shape& shape) { return shape.n == batch; };
  if (rows >= 1 && std::all_of(inputs.begin(), inputs.end(), has_rows)) {
    for (Shape& input : inputs) input.n = rows;
    return layer_cost(asked, phase, inputs);
  }
  const std::vector<Shape> all = shapes(rows);
  for (size_t i = 0; i < inputs.size(); ++i) inputs[i] = all[size_t(asked.inputs[i])];
  return layer_cost(asked, phase, inputs);
}

tandem_layer_statistics Net::statistics(int layer) const {
  const Layer& asked = layers.at(size_t(layer));
  return layer_statistics(asked, phase, input_shapes(*this, asked));
}

int Net::values_of(int tensor) const {
  for (;;) {
    const Tensor& t = tensors[size_t(tensor)];
    if (t.alias_of < 0 && t.view_of < 0) return tensor;
    tensor = t.alias_of >= 0 ? t.alias_of : t.view_of;
  }
}

int Net::in_place_root(int tensor) const {
  const int root = tensors[size_t(tensor)].alias_of;
  return root >= 0 ? root : tensor;
}

int Net::gradient_of(int tensor) const {
  for (;;) {
    const int root = in_place_root(tensor);
    const int of = tensors[size_t(root)].gradient_view_of;
    if (of < 0) return root;
    tensor = of;
  }
}

bool Net::makes_views(int layer) const {
  const std::vector<int>& outputs = this->layer(layer).outputs;
  return !outputs.empty() && std::all_of(outputs.begin(), outputs.end(), [this](int output) {
    return tensor(output).view_of >= 0;
  });
}

bool Net::makes_gradient_views(int layer) const {
  const Layer& l = this->layer(layer);
  return !l.outputs.empty() && std::any_of(l.inputs.begin(), l.inputs.end(), [&](int input) {
    return tensor(input).gradient_view_of == l.outputs[0];
  });
}

int Net::fused_layer(int layer) const {
  const Layer& maker = this->layer(layer);
  if (maker.activation == TANDEM_ACTIVATION_NONE) return -1;
  const int next = tensor(maker.outputs[0]).consumers.at(0);
  if (maker.addend < 0) return next;
  return tensor(this->layer(next).outputs[0]).consumers.at(0);  // behind the fused sum
}

void Net::separate_fusions() {
  for (Layer& layer : layers) {
    layer.activation = TANDEM_ACTIVATION_NONE;
    layer.addend = -1;
    layer.fused_into = -1;
    layer.gradient_fused_into = -1;
    layer.activation_before = TANDEM_ACTIVATION_NONE;
  }
}

const char* activation_name(int32_t activation) {
  return activation == TANDEM_ACTIVATION_RELU ? "relu" : "no activation";
}

int Net::find_layer(const std::string& layer_name) const {
  for (size_t i = 0; i < layers.size(); ++i) {
    const Layer& layer = layers[i];
    const bool is_joined = !layer.joined_scale.empty() && layer.joined_scale == layer_name;
    if (layer.name == layer_name || is_joined) return static_cast<int>(i);
  }
  return -1;
}

std::vector<Shape> input_shapes(const Net& net, const Layer& layer) {
  std::vector<Shape> shapes;
  for (const int tensor : layer.inputs) shapes.push_back(net.tensor(tensor).shape);
  return shapes;
}

}  // namespace tandem
