#include "core/model/passes/results.h"

#include <algorithm>
#include <optional>

#include "core/model/file/fields.h"
#include "core/model/net/layer_calls.h"

namespace tandem {

namespace {

// A Reduction without an axis also reduces over the batch. As a loss, its usual use, it becomes a
// Reduction over the values of each sample and a SumLoss over the samples.
bool reduces_batch(const LayerDefinition& definition) {
  if (definition.type != "Reduction") return false;
  for (const Field* block : definition.body.all("reduction_param")) {
    if (const Field* axis = block_of(*block, definition.title()).find("axis")) {
      return integer_of(*axis, definition.title()) == 0;
    }
  }
  return true;
}

bool has_loss_weight(const LayerDefinition& definition) {
  return std::any_of(definition.loss_weights.begin(), definition.loss_weights.end(),
                     [](double weight) { return weight != 0; });
}

// A loss_weight must not change the shape of a tensor that another layer reads.
void require_unread(const Net& net, const Layer& layer) {
  const Tensor& tensor = net.tensor(layer.outputs[0]);
  if (tensor.consumers.empty()) return;
  throw layer_error(
      layer, fmt::format("its output '{}' is a sum over the batch and has a loss_weight, so {} "
                         "cannot read it: write axis: 1",
                         tensor.name, net.layer(tensor.consumers.front()).title()));
}

Insertion loss_sum(Draft& draft, size_t at, size_t output, bool is_mean) {
  Net& net = draft.net;
  const int tensor = net.layers[at].outputs[output];
  const std::string name = net.tensor(tensor).name + "_sum";
  Insertion insertion;
  insertion.before = static_cast<int>(at) + 1;
  insertion.takes_gradient = {true};
  Layer& layer = insertion.layer = make_inserted_layer(draft, "SumLoss", name);
  if (is_mean) {
    Attributes attributes = *layer.attributes;
    attributes.set("normalization", {std::string("BATCH_SIZE"), true, {}});
    layer.attributes = std::make_shared<const Attributes>(std::move(attributes));
  }
  layer.inputs = {tensor};
  layer.loss_weights = {net.layers[at].loss_weights[output]};
  net.layers[at].loss_weights[output] = 0;
  layer.outputs = {add_tensor(net, layer.name, {1, 1, 1, 1})};
  return insertion;
}

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

std::shared_ptr<const Attributes> with_axis_of_samples(
    const LayerDefinition& definition, const std::shared_ptr<const Attributes>& attributes) {
  if (!reduces_batch(definition) || !has_loss_weight(definition)) return attributes;
  Attributes changed = *attributes;
  changed.set("axis", {int64_t{1}, true, definition.location});
  return std::make_shared<const Attributes>(std::move(changed));
}

void insert_loss_sums(const NetDefinition& definition, Draft& draft) {
  std::vector<Insertion> insertions;
  for (size_t i = 0; i < draft.net.layers.size(); ++i) {
    if (draft.net.layers[i].has(TANDEM_LOSS)) continue;
    for (size_t k = 0; k < draft.net.layers[i].loss_weights.size(); ++k) {
      if (draft.net.layers[i].loss_weights[k] == 0) continue;
      const LayerDefinition& written =
          definition.layers[static_cast<size_t>(draft.definition_of[i])];
      const Layer& layer = draft.net.layers[i];
      if (reduces_batch(written)) require_unread(draft.net, layer);
      const bool is_mean = reduces_batch(written) && layer.attributes->text("operation") == "MEAN";
      insertions.push_back(loss_sum(draft, i, k, is_mean));
    }
  }
  if (!insertions.empty()) insert_layers(draft, std::move(insertions));
}

int find_prediction(const Net& net) {
  for (size_t i = net.layers.size(); i-- > 0;) {
    const Layer& layer = net.layers[i];
    if (!layer.is_result()) continue;
    if (layer.inputs.size() > 1 && net.label >= 0 && layer.inputs[1] == net.label) {
      return layer.inputs[0];
    }
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
