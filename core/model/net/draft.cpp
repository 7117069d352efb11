#include "core/model/net/draft.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/model/net/layer_calls.h"

namespace tandem {

int add_tensor(Net& net, const std::string& name, const Shape& shape) {
  Tensor tensor;
  tensor.name = name;
  tensor.shape = shape;
  net.tensors.push_back(std::move(tensor));
  return static_cast<int>(net.tensors.size()) - 1;
}

void relink(Draft& draft) {
  Net& net = draft.net;
  for (Tensor& tensor : net.tensors) {
    tensor.producer = -1;
    tensor.consumers.clear();
    tensor.has_gradient = false;
  }
  for (WeightArray& weight : net.weights) weight.layer = -1;
  for (size_t i = 0; i < net.layers.size(); ++i) {
    const Layer& layer = net.layers[i];
    const int number = static_cast<int>(i);
    for (const int output : layer.outputs) {
      net.tensor(output).producer = number;
    }
    for (size_t k = 0; k < layer.inputs.size(); ++k) {
      Tensor& tensor = net.tensor(layer.inputs[k]);
      if (tensor.consumers.empty() || tensor.consumers.back() != number) {
        tensor.consumers.push_back(number);
      }
      if (draft.writes_gradient(i, k)) tensor.has_gradient = true;
    }
    for (const int weight : layer.weights) {
      int& first = net.weight(weight).layer;
      if (first < 0) first = number;
    }
  }
}

Insertion make_insertion(Draft& draft, const std::string& type, const std::string& name, int before,
                         int input, size_t outputs) {
  Layer layer;
  layer.name = name;
  for (int number = 2; !draft.layer_names.insert(layer.name).second; ++number) {
    layer.name = fmt::format("{}_{}", name, number);
  }
  layer.location = {draft.file, 0, 0};
  const std::string title = fmt::format("layer '{}' ({}), which the net needs", layer.name, type);
  layer.type = &find_type(*draft.registry, type, title, layer.location);
  auto attributes = std::make_shared<Attributes>();
  for (uint32_t i = 0; i < layer.type->parameter_count; ++i) {
    const tandem_parameter& parameter = *layer.type->parameters[i];
    attributes->set(parameter.name, default_attribute(parameter, title));
  }
  layer.attributes = std::move(attributes);
  layer.inputs = {input};
  layer.outputs.resize(outputs);
  layer.loss_weights.resize(outputs);
  return {before, std::move(layer), {true}};
}

void insert_layers(Draft& draft, std::vector<Insertion> insertions) {
  std::stable_sort(insertions.begin(), insertions.end(),
                   [](const Insertion& a, const Insertion& b) { return a.before < b.before; });
  std::vector<Layer> layers;
  std::vector<DraftLayer> more;
  auto next = insertions.begin();
  const auto insert_before = [&](size_t place) {
    for (; next != insertions.end() && next->before <= static_cast<int>(place); ++next) {
      layers.push_back(std::move(next->layer));
      more.push_back({-1, {}, std::move(next->takes_gradient)});
    }
  };
  for (size_t i = 0; i < draft.more.size(); ++i) {
    insert_before(i);
    layers.push_back(std::move(draft.net.layers[i]));
    more.push_back(std::move(draft.more[i]));
  }
  insert_before(draft.more.size());
  draft.net.layers = std::move(layers);
  draft.more = std::move(more);
  relink(draft);
}

namespace {

template <class T>
void erase_at(std::vector<T>& elements, const std::set<int>& indices) {
  std::vector<T> rest;
  for (size_t i = 0; i < elements.size(); ++i) {
    if (!indices.contains(static_cast<int>(i))) rest.push_back(std::move(elements[i]));
  }
  elements = std::move(rest);
}

}  // namespace

void remove_layers(Draft& draft, const std::set<int>& layers, const std::set<int>& tensors) {
  Net& net = draft.net;
  erase_at(net.layers, layers);
  erase_at(draft.more, layers);
  std::vector<int> kept(net.tensors.size());
  std::iota(kept.begin(), kept.end(), 0);
  erase_at(kept, tensors);
  std::vector<int> moved(net.tensors.size(), -1);
  for (size_t i = 0; i < kept.size(); ++i) moved[size_t(kept[i])] = static_cast<int>(i);
  erase_at(net.tensors, tensors);
  const auto move = [&](int& tensor) {
    if (tensor >= 0) tensor = moved[size_t(tensor)];
  };
  for (Layer& layer : net.layers) {
    for (int& input : layer.inputs) move(input);
    for (int& output : layer.outputs) move(output);
  }
  move(net.data);
  move(net.label);
  for (int& input : net.more_inputs) move(input);
  relink(draft);
}

}  // namespace tandem
