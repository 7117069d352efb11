#include "core/model/passes/passes.h"

#include <algorithm>

#include "core/model/net/layer_calls.h"

namespace tandem {

namespace {

bool has_trained_weights(const Net& net, const Layer& layer) {
  return std::any_of(layer.weights.begin(), layer.weights.end(),
                     [&net](int weight) { return net.weight(weight).trained(); });
}

bool has_loss(const Layer& layer) {
  return layer.has(TANDEM_LOSS) && any_nonzero(layer.loss_weights);
}

// The tensors that depend on a trained weight.
std::vector<bool> learning_tensors(const Draft& draft) {
  const Net& net = draft.net;
  std::vector<bool> learns(net.tensors.size(), false);
  for (size_t i = 0; i < net.layers.size(); ++i) {
    const Layer& layer = net.layers[i];
    bool any = has_trained_weights(net, layer);
    for (size_t k = 0; k < layer.inputs.size(); ++k) {
      any = any || (draft.more[i].takes_gradient[k] && learns[size_t(layer.inputs[k])]);
    }
    for (const int output : layer.outputs) learns[size_t(output)] = any;
  }
  return learns;
}

// A weight without a gradient in this net must not be updated with undefined memory.
void freeze_unreached(Net& net) {
  std::vector<bool> reached(net.weights.size(), false);
  for (const Layer& layer : net.layers) {
    if (!layer.wants_backward_weights) continue;
    for (const int weight : layer.weights) reached[size_t(weight)] = true;
  }
  for (size_t i = 0; i < net.weights.size(); ++i) {
    if (!reached[i]) net.weights[i].rate_multiplier = 0;
  }
}

// A weight whose lr_mult is not 0, as the file has it; null: none.
const Layer* first_to_train(const Draft& draft) {
  for (size_t i = 0; i < draft.more.size(); ++i) {
    for (const DeclaredWeight& weight : draft.more[i].declared) {
      const bool trains = weight.array.kind == TANDEM_TRAINED && weight.rule.rate_multiplier() != 0;
      if (trains) return &draft.net.layers[i];
    }
  }
  return nullptr;
}

void require_something_to_train(const Draft& draft) {
  const Net& net = draft.net;
  const auto any = [&net](auto is) {
    return std::any_of(net.layers.begin(), net.layers.end(), is);
  };
  const std::string where = in_file({draft.file, 0, 0});
  if (!any(has_loss)) {
    const bool is_off = any([](const Layer& layer) { return layer.has(TANDEM_LOSS); });
    throw error(
        "net '{}' has no loss{} in the TRAIN phase, so it can be tested but not trained: {}{}",
        net.name, is_off ? " whose loss_weight is not 0" : "",
        is_off ? "remove loss_weight: 0" : "add a SoftmaxWithLoss layer", where);
  }
  if (any([](const Layer& layer) { return layer.wants_backward_weights; })) return;
  const Layer* blocked = first_to_train(draft);
  if (blocked == nullptr) {
    throw error("net '{}' has no weights to train: no layer has a weight whose lr_mult is not 0{}",
                net.name, where);
  }
  throw layer_error(*blocked,
                    "no gradient reaches its weights nor those of another layer, so that net '{}' "
                    "has no weights to train: no loss reads what they make, or a layer without a "
                    "gradient (ArgMax, Threshold) or propagate_down: false is between",
                    net.name);
}

// One layer would write a gradient that another layer's propagate_down forbids.
void refuse_mixed_gradients(const Draft& draft) {
  const Net& net = draft.net;
  for (size_t i = 0; i < net.layers.size(); ++i) {
    const Layer& layer = net.layers[i];
    if (!layer.wants_backward_data) continue;
    for (size_t k = 0; k < layer.inputs.size(); ++k) {
      const Tensor& tensor = net.tensor(layer.inputs[k]);
      if (draft.more[i].takes_gradient[k] || !tensor.has_gradient) continue;
      if (!layer.may_take_gradient(k)) continue;  // its kernel knows
      throw layer_error(layer,
                        "no gradient goes into its input '{}', but another "
                        "layer's does, which is not supported together",
                        tensor.name);
    }
  }
}

struct Use {
  int layer = 0;
  size_t input = 0;
};

// For each tensor, the layers whose backward pass writes its gradient.
std::vector<std::vector<Use>> gradient_uses(const Draft& draft) {
  std::vector<std::vector<Use>> uses(draft.net.tensors.size());
  for (size_t i = 0; i < draft.net.layers.size(); ++i) {
    const Layer& layer = draft.net.layers[i];
    for (size_t k = 0; k < layer.inputs.size(); ++k) {
      if (!draft.writes_gradient(i, k)) continue;
      uses[size_t(layer.inputs[k])].push_back({static_cast<int>(i), k});
    }
  }
  return uses;
}

Insertion split(Draft& draft, int tensor, const std::vector<Use>& uses) {
  Net& net = draft.net;
  const std::string name = net.tensor(tensor).name + "_split";
  Insertion insertion =
      make_insertion(draft, "Split", name, uses.front().layer, tensor, uses.size());
  Layer& layer = insertion.layer;
  layer.wants_backward_data = true;
  const std::vector<Shape> shapes = output_shapes(layer, net.phase, input_shapes(net, layer));
  for (size_t i = 0; i < uses.size(); ++i) {
    layer.outputs[i] = add_tensor(net, fmt::format("{}_{}", layer.name, i), shapes[i]);
    net.layer(uses[i].layer).inputs[uses[i].input] = layer.outputs[i];
  }
  return insertion;
}

}  // namespace

void find_gradients(Draft& draft) {
  Net& net = draft.net;
  if (net.phase != TANDEM_TRAIN) {
    for (DraftLayer& layer : draft.more) {
      layer.takes_gradient.assign(layer.takes_gradient.size(), false);
    }
    return relink(draft);
  }
  const std::vector<bool> learns = learning_tensors(draft);
  std::vector<bool> wanted(net.tensors.size(), false);  // tensors that get a gradient
  for (size_t i = net.layers.size(); i-- > 0;) {
    Layer& layer = net.layers[i];
    bool reached = has_loss(layer);
    for (const int output : layer.outputs) reached = reached || wanted[size_t(output)];
    layer.wants_backward_weights = reached && has_trained_weights(net, layer);
    for (size_t k = 0; k < layer.inputs.size(); ++k) {
      const auto input = size_t(layer.inputs[k]);
      const bool takes = reached && draft.more[i].takes_gradient[k] && learns[input];
      draft.more[i].takes_gradient[k] = takes;
      if (takes) wanted[input] = layer.wants_backward_data = true;
    }
  }
  freeze_unreached(net);
  relink(draft);
  require_something_to_train(draft);
  refuse_mixed_gradients(draft);
}

void insert_splits(Draft& draft) {
  const std::vector<std::vector<Use>> uses = gradient_uses(draft);
  std::vector<Insertion> insertions;
  for (size_t tensor = 0; tensor < uses.size(); ++tensor) {
    if (uses[tensor].size() < 2) continue;
    insertions.push_back(split(draft, static_cast<int>(tensor), uses[tensor]));
  }
  insert_layers(draft, std::move(insertions));
}

}  // namespace tandem
