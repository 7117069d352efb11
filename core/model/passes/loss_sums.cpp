#include "core/model/passes/passes.h"

#include <algorithm>

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

// A loss_weight must not change the shape of a tensor that another layer reads.
void require_unread(const Net& net, const Layer& layer) {
  const Tensor& tensor = net.tensor(layer.outputs[0]);
  if (tensor.consumers.empty()) return;
  throw layer_error(layer,
                    "its output '{}' is a sum over the batch and has a loss_weight, so {} "
                    "cannot read it: write axis: 1",
                    tensor.name, net.layer(tensor.consumers.front()).title());
}

Insertion loss_sum(Draft& draft, size_t at, size_t output, bool is_mean) {
  Net& net = draft.net;
  const int tensor = net.layers[at].outputs[output];
  const std::string name = net.tensor(tensor).name + "_sum";
  Insertion insertion = make_insertion(draft, "SumLoss", name, static_cast<int>(at) + 1, tensor, 1);
  Layer& layer = insertion.layer;
  if (is_mean) {
    Attributes attributes = *layer.attributes;
    attributes.set("normalization", {std::string("BATCH_SIZE"), true, {}});
    layer.attributes = std::make_shared<const Attributes>(std::move(attributes));
  }
  layer.loss_weights = {net.layers[at].loss_weights[output]};
  net.layers[at].loss_weights[output] = 0;
  layer.outputs = {add_tensor(net, layer.name, {1, 1, 1, 1})};
  return insertion;
}

}  // namespace

std::shared_ptr<const Attributes> with_axis_of_samples(
    const LayerDefinition& definition, const std::shared_ptr<const Attributes>& attributes) {
  if (!reduces_batch(definition) || !any_nonzero(definition.loss_weights)) return attributes;
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
      const LayerDefinition& written = definition.layers[size_t(draft.more[i].definition)];
      const Layer& layer = draft.net.layers[i];
      if (reduces_batch(written)) require_unread(draft.net, layer);
      const bool is_mean = reduces_batch(written) && layer.attributes->text("operation") == "MEAN";
      insertions.push_back(loss_sum(draft, i, k, is_mean));
    }
  }
  if (!insertions.empty()) insert_layers(draft, std::move(insertions));
}

}  // namespace tandem
