#include "core/schedule/cost/costs_of_net.h"

#include <set>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/model/adapted/models.h"

namespace tandem {
namespace {

// Not all layers are measured: some are fused into others, or have no pass.
bool are_mostly_alike(const NetDefinition& net, const std::set<std::string>& measured) {
  std::set<std::string> names;
  for (const LayerDefinition& layer : net.layers) names.insert(layer.name);
  size_t common = 0;
  for (const std::string& name : measured) common += names.contains(name) ? 1 : 0;
  return 2 * common >= measured.size() && 3 * common >= names.size();
}

void require_layers_of(const std::string& name, const NetDefinition& definition,
                       const CostTable& costs, const std::string& file) {
  const std::string& measured = costs.net();
  if (measured.empty() || measured == name) return;
  const bool are_models = is_model_name(measured) && is_model_name(name);
  if (!are_models && are_mostly_alike(definition, costs.layers())) return;
  throw error(
      "costs file '{0}' is of net '{1}', not of net '{2}': measure this one with `tandem profile "
      "--net {2} --costs FILE`",
      file, measured, name);
}

// Layers of the net that were measured with other extents.
std::vector<int> other_layers(const Net& net, const CostTable& costs) {
  std::vector<int> others;
  for (size_t i = 0; i < net.layers.size(); ++i) {
    const std::string* measured = costs.extents(net.layers[i].name);
    const auto layer = static_cast<int>(i);
    if (measured != nullptr && *measured != extents_of(net, layer)) others.push_back(layer);
  }
  return others;
}

}  // namespace

std::string extents_of(const Net& net, int index) {
  const Layer& layer = net.layer(index);
  const auto add_samples = [&](std::string& text, const std::vector<int>& tensors) {
    for (const int tensor : tensors) {
      const Shape& shape = net.tensor(tensor).shape;
      text += fmt::format(" {}x{}x{}", shape.c, shape.h, shape.w);
    }
  };
  std::string text = layer.type->name;
  add_samples(text, layer.inputs);
  text += " to";
  add_samples(text, layer.outputs);
  if (!layer.weight_shapes.empty()) text += " by";
  for (const Shape& shape : layer.weight_shapes) text += " " + to_string(shape);
  return text;
}

void take_costs_of(const std::string& name, const NetDefinition& definition, const Net& net,
                   const std::string& file, CostTable& costs) {
  require_layers_of(name, definition, costs, file);
  const std::vector<int> others = other_layers(net, costs);
  if (2 * others.size() > costs.layers().size()) {
    const std::string& layer = net.layer(others[0]).name;
    throw error(
        "costs file '{}' is of a net '{}' with other extents: its layer '{}' is {}, that of net "
        "'{}' {}: measure this one with `tandem profile --net {} --costs FILE` at the same image "
        "size",
        file, costs.net(), layer, *costs.extents(layer), name, extents_of(net, others[0]), name);
  }
  for (const int layer : others) costs.forget(net.layer(layer).name);
}

}  // namespace tandem
