// Caffe's loss_weight on a layer that is no loss: the sum of the output over the batch is part of
// the loss. Here a SumLoss does that, so that devices may each have a share of the batch.
#include <algorithm>

#include "core/model/fields.h"
#include "core/model/layer_calls.h"
#include "core/model/passes.h"

namespace tandem {

namespace {

// A Reduction without an axis reduces over the batch, too: as a loss, its usual use, it is a
// Reduction over each sample's values, and a SumLoss over the samples.
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

// What is read elsewhere must not have another shape because of its loss_weight.
void require_unread(const Net& net, const Layer& layer) {
  const Tensor& tensor = net.tensors[static_cast<size_t>(layer.outputs[0])];
  if (tensor.consumers.empty()) return;
  throw layer_error(
      layer,
      fmt::format("its output '{}' is a sum over the batch and has a loss_weight, so {} "
                  "cannot read it: write axis: 1",
                  tensor.name, net.layers[static_cast<size_t>(tensor.consumers.front())].title()));
}

Insertion loss_sum(Draft& draft, size_t at, size_t output, bool is_mean) {
  Net& net = draft.net;
  const int tensor = net.layers[at].outputs[output];
  const std::string name = net.tensors[static_cast<size_t>(tensor)].name + "_sum";
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
  Tensor sum;
  sum.name = layer.name;
  sum.shape = {1, 1, 1, 1};
  layer.outputs = {static_cast<int>(net.tensors.size())};
  net.tensors.push_back(std::move(sum));
  return insertion;
}

}  // namespace

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

}  // namespace tandem
