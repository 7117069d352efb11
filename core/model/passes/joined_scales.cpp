#include "core/model/passes/passes.h"

#include <algorithm>
#include <set>
#include <vector>

#include "core/model/file/attributes_reader.h"
#include "core/plugin/registry.h"

namespace tandem {

namespace {

constexpr const char* joined_type = "BatchNormScale";

// How many layers use each array.
std::vector<int> users_of_weights(const Net& net) {
  std::vector<int> users(net.weights.size(), 0);
  for (const Layer& layer : net.layers) {
    for (const int weight : layer.weights) ++users[size_t(weight)];
  }
  return users;
}

// Whether it has a factor and a bias for each channel, as the BatchNorm has its means. Over another
// axis the shape may be the same.
bool is_of_channels(const Layer& scale, const Layer& norm) {
  constexpr size_t factor_and_bias = 2;
  if (scale.inputs.size() != 1 || scale.weights.size() != factor_and_bias) return false;
  constexpr int64_t channels = 1, axes = 4;
  const int64_t axis = scale.attributes->integer("axis");
  return (axis == channels || axis == channels - axes) &&
         std::all_of(scale.weight_shapes.begin(), scale.weight_shapes.end(),
                     [&norm](const Shape& shape) { return equal(shape, norm.weight_shapes[0]); });
}

// Whether no other layer uses their arrays, and these follow one another as those of one layer do.
bool have_arrays_alone(const Layer& norm, const Layer& scale, const std::vector<int>& users) {
  std::vector<int> arrays = norm.weights;
  arrays.insert(arrays.end(), scale.weights.begin(), scale.weights.end());
  for (size_t i = 0; i < arrays.size(); ++i) {
    if (users[size_t(arrays[i])] > 1 || arrays[i] != arrays[0] + static_cast<int>(i)) return false;
  }
  return true;
}

// The Scale that can be joined with the BatchNorm; -1: there is none.
int scale_of(const Draft& draft, size_t index, const std::vector<int>& users) {
  const Net& net = draft.net;
  const Layer& norm = net.layers[index];
  if (!norm.is("BatchNorm") || norm.outputs.size() != 1 || norm.weights.empty()) return -1;
  const std::vector<int>& consumers = net.tensor(norm.outputs[0]).consumers;
  const int next = static_cast<int>(index) + 1;
  // Layers between the two would be computed in another order.
  if (consumers.size() != 1 || consumers[0] != next) return -1;
  const Layer& scale = net.layer(next);
  if (!scale.is("Scale") || !is_of_channels(scale, norm)) return -1;
  if (!have_arrays_alone(norm, scale, users)) return -1;
  // propagate_down: false cuts the gradient between the two.
  const bool passes_gradient = draft.more[size_t(next)].takes_gradient[0];
  return any_nonzero(norm.loss_weights) || !passes_gradient ? -1 : next;
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
    join(norm, draft.net.layer(scale), definition.layers[size_t(draft.more[i].definition)], *type);
  }
  if (!scales.empty()) remove_layers(draft, scales, tensors);
}

}  // namespace tandem
