#include "core/model/joined_scales.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <vector>

#include "core/model/attributes_reader.h"
#include "core/plugin/registry.h"

namespace tandem {

namespace {

constexpr const char* joined_type = "BatchNormScale";

bool has_type(const Layer& layer, const char* type) {
  return std::strcmp(layer.type->name, type) == 0;
}

// How many layers use each array.
std::vector<int> users_of_weights(const Net& net) {
  std::vector<int> users(net.weights.size(), 0);
  for (const Layer& layer : net.layers) {
    for (const int weight : layer.weights) ++users[size_t(weight)];
  }
  return users;
}

// The Scale that can be joined with the BatchNorm; -1: there is none.
int scale_of(const Draft& draft, size_t index, const std::vector<int>& users) {
  const Net& net = draft.net;
  const Layer& norm = net.layers[index];
  if (!has_type(norm, "BatchNorm") || norm.outputs.size() != 1 || norm.weights.empty()) return -1;
  const std::vector<int>& consumers = net.tensor(norm.outputs[0]).consumers;
  // The layer after it: others between the two would be computed in another order.
  if (consumers.size() != 1 || consumers[0] != static_cast<int>(index) + 1) return -1;
  const Layer& scale = net.layer(consumers[0]);
  constexpr size_t factor_and_bias = 2;
  if (!has_type(scale, "Scale") || scale.inputs.size() != 1 ||
      scale.weights.size() != factor_and_bias) {
    return -1;
  }
  // One for each channel, as BatchNorm has its means; over another axis the shape may be the same.
  constexpr int64_t channels = 1, axes = 4;
  const int64_t axis = scale.attributes->integer("axis");
  if (axis != channels && axis != channels - axes) return -1;
  for (const Shape& shape : scale.weight_shapes) {
    if (!equal(shape, norm.weight_shapes[0])) return -1;
  }
  const auto is_shared = [&](int weight) { return users[size_t(weight)] > 1; };
  if (std::any_of(norm.weights.begin(), norm.weights.end(), is_shared) ||
      std::any_of(scale.weights.begin(), scale.weights.end(), is_shared)) {
    return -1;
  }
  // A layer's arrays follow one another.
  if (scale.weights[0] != norm.weights.back() + 1 || scale.weights[1] != scale.weights[0] + 1) {
    return -1;
  }
  const auto is_in_loss = [](double weight) { return weight != 0; };
  if (std::any_of(norm.loss_weights.begin(), norm.loss_weights.end(), is_in_loss)) return -1;
  // propagate_down: false cuts the gradient between the two.
  return draft.takes_gradient[size_t(consumers[0])][0] ? consumers[0] : -1;
}

void join(Layer& norm, const Layer& scale, const LayerDefinition& definition,
          const tandem_layer_type& type) {
  norm.attributes = read_attributes(definition, type);
  norm.type = &type;
  norm.outputs = scale.outputs;
  norm.loss_weights = scale.loss_weights;
  norm.weights.insert(norm.weights.end(), scale.weights.begin(), scale.weights.end());
  norm.weight_shapes.insert(norm.weight_shapes.end(), scale.weight_shapes.begin(),
                            scale.weight_shapes.end());
  norm.joined_scale = scale.name;
}

}  // namespace

void join_scales(const NetDefinition& definition, Draft& draft, const std::string& device_kind) {
  const std::vector<int> users = users_of_weights(draft.net);
  const tandem_layer_type* type = nullptr;
  std::set<int> scales, tensors;
  for (size_t i = 0; i < draft.net.layers.size(); ++i) {
    const int scale = scale_of(draft, i, users);
    if (scale < 0) continue;
    if (type == nullptr) type = draft.registry->find_layer_type(joined_type);
    if (type == nullptr || draft.registry->find_kernel(joined_type, device_kind) == nullptr) return;
    Layer& norm = draft.net.layers[i];
    tensors.insert(norm.outputs[0]);
    scales.insert(scale);
    join(norm, draft.net.layer(scale), definition.layers[size_t(draft.definition_of[i])], *type);
  }
  if (!scales.empty()) remove_layers(draft, scales, tensors);
}

}  // namespace tandem
