#include "core/base/error.h"
#include "core/model/fields.h"
#include "core/model/passes.h"

namespace tandem {

namespace {

bool is_one(const Shape& shape) {
  return element_count(shape) == 1;
}

// Of a loss that trains the net, nothing else may be made: its gradient begins here.
void require_result(const Net& net, const Layer& layer, const Tensor& tensor) {
  if (!is_one(tensor.shape)) {
    throw error("{}: its loss '{}' has the shape {}, but must be one value{}", layer.title(),
                tensor.name, to_string(tensor.shape), in_place(layer.location));
  }
  if (tensor.consumers.empty()) return;
  const Layer& reader = net.layers[static_cast<size_t>(tensor.consumers.front())];
  throw error(
      "{}: its loss '{}' is read by {}, but a loss is a result of the net; several losses add up "
      "by "
      "themselves, each with its loss_weight{}",
      layer.title(), tensor.name, reader.title(), in_place(layer.location));
}

}  // namespace

// What the user calls the prediction: the scores that the last loss or metric compares with the
// labels (auxiliary heads come before the main one), else the last thing the net makes.
int find_prediction(const Net& net) {
  for (size_t i = net.layers.size(); i-- > 0;) {
    const Layer& layer = net.layers[i];
    if (!layer.has(TANDEM_LOSS) && !layer.has(TANDEM_METRIC)) continue;
    if (layer.inputs.size() > 1 && net.label >= 0 && layer.inputs[1] == net.label) {
      return layer.inputs[0];
    }
  }
  for (size_t i = net.layers.size(); i-- > 0;) {
    const Layer& layer = net.layers[i];
    if (layer.has(TANDEM_LOSS) || layer.has(TANDEM_METRIC)) continue;
    for (const int output : layer.outputs) {
      if (net.tensors[static_cast<size_t>(output)].consumers.empty()) return output;
    }
  }
  return -1;
}

void find_results(Draft& draft) {
  Net& net = draft.net;
  for (size_t i = 0; i < net.layers.size(); ++i) {
    const Layer& layer = net.layers[i];
    if (!layer.has(TANDEM_LOSS) && !layer.has(TANDEM_METRIC)) continue;
    for (size_t k = 0; k < layer.outputs.size(); ++k) {
      const Tensor& tensor = net.tensors[static_cast<size_t>(layer.outputs[k])];
      if (layer.has(TANDEM_LOSS) && layer.loss_weights[k] != 0) require_result(net, layer, tensor);
      if (!tensor.consumers.empty() || !is_one(tensor.shape)) continue;
      net.scalars.push_back({tensor.name, static_cast<int>(i), static_cast<int>(k),
                             layer.outputs[k], layer.loss_weights[k]});
    }
  }
  net.prediction = find_prediction(net);
}

}  // namespace tandem
