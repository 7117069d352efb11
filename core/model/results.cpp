#include "core/model/passes.h"

namespace tandem {

namespace {

bool is_one(const Shape& shape) {
  return element_count(shape) == 1;
}

// A loss is divided by the samples of the global batch: VALID, FULL and BATCH_SIZE mean the same as
// long as no label is ignored. What means something else is refused, not ignored.
void demand_known_normalization(const Layer& layer) {
  const Attribute* normalization = layer.attributes->find("normalization");
  const auto* word =
      normalization != nullptr ? std::get_if<std::string>(&normalization->value) : nullptr;
  if (word != nullptr && *word == "NONE") {
    throw error("{}: normalization NONE is not supported yet; use VALID, FULL or BATCH_SIZE ({})",
                layer.title(), to_string(layer.location));
  }
  const Attribute* ignored = layer.attributes->find("ignore_label");
  if (ignored != nullptr && ignored->is_set) {
    throw error("{}: ignore_label is not supported yet: leave such samples out of the data ({})",
                layer.title(), to_string(layer.location));
  }
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
    demand_known_normalization(layer);
    for (size_t k = 0; k < layer.outputs.size(); ++k) {
      const Tensor& tensor = net.tensors[static_cast<size_t>(layer.outputs[k])];
      if (!tensor.consumers.empty() || !is_one(tensor.shape)) continue;
      net.scalars.push_back({tensor.name, static_cast<int>(i), static_cast<int>(k),
                             layer.outputs[k], layer.loss_weights[k]});
    }
  }
  net.prediction = find_prediction(net);
}

}  // namespace tandem
