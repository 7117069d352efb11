#include "core/model/passes/results.h"

#include <algorithm>
#include <optional>

#include "core/model/adapted/classes.h"

namespace tandem {

namespace {

bool is_one(const Shape& shape) {
  return element_count(shape) == 1;
}

// The gradient begins at a loss that trains the net, so no other layer may read it.
void require_result(const Net& net, const Layer& layer, const Tensor& tensor) {
  if (!is_one(tensor.shape)) {
    throw error("{}: its loss '{}' has the shape {}, but must be one value{}", layer.title(),
                tensor.name, to_string(tensor.shape), in_file(layer.location));
  }
  if (tensor.consumers.empty()) return;
  const Layer& reader = net.layer(tensor.consumers.front());
  throw error(
      "{}: its loss '{}' is read by {}, but a loss is a result of the net; several losses are "
      "added, each with its loss_weight{}",
      layer.title(), tensor.name, reader.title(), in_file(layer.location));
}

// The label whose rows are no part of the layer's mean. A loss that divides by all rows has none:
// it counts no labels, and declares no statistics for them.
std::optional<float> ignored_label(const Net& net, int index) {
  constexpr const char* name = "ignore_label";
  const Layer& layer = net.layer(index);
  if (layer.inputs.size() < 2 || net.label < 0 || layer.inputs[1] != net.label) return {};
  const Attributes& attributes = *layer.attributes;
  if (attributes.find(name) == nullptr || !attributes.is_set(name)) return {};
  if (net.statistics(index).forward == 0) return {};
  return static_cast<float>(attributes.integer(name));
}

}  // namespace

int64_t rows_of_mean(const Net& net, const Scalar& scalar, std::span<const float> labels) {
  const std::optional<float> ignored = ignored_label(net, scalar.layer);
  return std::count_if(labels.begin(), labels.end(), [&](float label) {
    return has_label(label) && !(ignored && label == *ignored);
  });
}

bool is_targets(const Net& net, int tensor) {
  return !net.more_inputs.empty() && tensor == net.more_inputs.back() &&
         net.tensor(tensor).name == class_targets_input;
}

int find_prediction(const Net& net) {
  for (size_t i = net.layers.size(); i-- > 0;) {
    const Layer& layer = net.layers[i];
    if (!layer.is_result()) continue;
    if (layer.inputs.size() < 2) continue;
    const int truth = layer.inputs[1];
    if ((net.label >= 0 && truth == net.label) || is_targets(net, truth)) return layer.inputs[0];
  }
  for (size_t i = net.layers.size(); i-- > 0;) {
    const Layer& layer = net.layers[i];
    if (layer.is_result()) continue;
    for (const int output : layer.outputs) {
      if (net.tensor(output).consumers.empty()) return output;
    }
  }
  return -1;
}

void find_results(Draft& draft) {
  Net& net = draft.net;
  for (size_t i = 0; i < net.layers.size(); ++i) {
    const Layer& layer = net.layers[i];
    if (!layer.is_result()) continue;
    for (size_t k = 0; k < layer.outputs.size(); ++k) {
      const Tensor& tensor = net.tensor(layer.outputs[k]);
      if (layer.has(TANDEM_LOSS) && layer.loss_weights[k] != 0) require_result(net, layer, tensor);
      if (!tensor.consumers.empty() || !is_one(tensor.shape)) continue;
      net.scalars.push_back({tensor.name, static_cast<int>(i), static_cast<int>(k),
                             layer.outputs[k], layer.loss_weights[k]});
    }
  }
  net.prediction = find_prediction(net);
}

}  // namespace tandem
