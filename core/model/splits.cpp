#include <cstring>

#include "core/model/layer_calls.h"
#include "core/model/passes.h"

namespace tandem {

namespace {

struct Use {
  int layer = 0;
  size_t input = 0;
};

// Where the backward of some layer writes the tensor's gradient.
std::vector<std::vector<Use>> gradient_uses(const Draft& draft) {
  std::vector<std::vector<Use>> uses(draft.net.tensors.size());
  for (size_t i = 0; i < draft.net.layers.size(); ++i) {
    const Layer& layer = draft.net.layers[i];
    for (size_t k = 0; k < layer.inputs.size(); ++k) {
      if (!layer.wants_backward_data || !draft.takes_gradient[i][k]) continue;
      uses[static_cast<size_t>(layer.inputs[k])].push_back({static_cast<int>(i), k});
    }
  }
  return uses;
}

Insertion split(Draft& draft, int tensor, const std::vector<Use>& uses) {
  Net& net = draft.net;
  const std::string name = net.tensors[static_cast<size_t>(tensor)].name + "_split";
  Insertion insertion;
  insertion.before = uses.front().layer;
  insertion.takes_gradient = {true};
  Layer& layer = insertion.layer = make_inserted_layer(draft, "Split", name);
  layer.inputs = {tensor};
  layer.outputs.resize(uses.size());
  layer.loss_weights.assign(uses.size(), 0.0);
  layer.wants_backward_data = true;
  const std::vector<Shape> shapes = output_shapes(layer, net.phase, input_shapes(net, layer));
  for (size_t i = 0; i < uses.size(); ++i) {
    Tensor copy;
    copy.name = fmt::format("{}_{}", layer.name, i);
    copy.shape = shapes[i];
    layer.outputs[i] = static_cast<int>(net.tensors.size());
    net.tensors.push_back(std::move(copy));
    net.layers[static_cast<size_t>(uses[i].layer)].inputs[uses[i].input] = layer.outputs[i];
  }
  return insertion;
}

}  // namespace

void insert_splits(Draft& draft) {
  const std::vector<std::vector<Use>> uses = gradient_uses(draft);
  std::vector<Insertion> insertions;
  for (size_t tensor = 0; tensor < uses.size(); ++tensor) {
    if (uses[tensor].size() < 2) continue;
    insertions.push_back(split(draft, static_cast<int>(tensor), uses[tensor]));
  }
  insert_layers(draft, std::move(insertions));
}

void view_splits(Draft& draft) {
  Net& net = draft.net;
  for (size_t i = 0; i < net.layers.size(); ++i) {
    const Layer& layer = net.layers[i];
    if (draft.definition_of[i] >= 0 || std::strcmp(layer.type->name, "Split") != 0) continue;
    const Tensor& from = net.tensors[static_cast<size_t>(layer.inputs[0])];
    for (const int output : layer.outputs) {
      Tensor& to = net.tensors[static_cast<size_t>(output)];
      if (to.layout == from.layout && to.dtype == from.dtype) to.view_of = layer.inputs[0];
    }
  }
}

}  // namespace tandem
