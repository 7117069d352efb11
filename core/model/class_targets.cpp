// A copy of a net whose losses read a weight for each class in place of the label.
#include <algorithm>

#include "core/model/class_targets.h"
#include "core/model/fields.h"

namespace tandem {
namespace {

std::string label_of(const NetDefinition& net) {
  for (const NetInput& input : net.net_inputs(TANDEM_TRAIN)) {
    if (input.role == NetInput::Role::label) return input.name;
  }
  throw error("net '{}' is fed with no labels{}", net.name, in_place({net.file, 0, 0}));
}

bool reads(const LayerDefinition& layer, const std::string& tensor) {
  return std::find(layer.bottoms.begin(), layer.bottoms.end(), tensor) != layer.bottoms.end();
}

LayerDefinition input_layer(int64_t classes, const std::string& file) {
  const std::string text = fmt::format(
      "layer {{ name: \"{0}\" type: \"Input\" top: \"{0}\" include {{ phase: TRAIN }} "
      "input_param {{ shape {{ dim: 1 dim: {1} }} }} }}",
      class_targets_input, classes);
  return parse_net(parse_text_format(text, file), file).layers.front();
}

// A type that nobody has is told of when the net is built.
uint64_t traits_of(const Registry& registry, const LayerDefinition& layer) {
  const tandem_layer_type* type = registry.find_layer_type(layer.type);
  return type == nullptr ? 0 : type->traits;
}

std::string takers(const Registry& registry) {
  std::vector<std::string> names;
  for (const std::string& name : registry.layer_types()) {
    const tandem_layer_type* type = registry.find_layer_type(name);
    if (type != nullptr && (type->traits & TANDEM_LABEL_OR_TARGETS) != 0) names.push_back(name);
  }
  return fmt::format("{} can", fmt::join(names, ", "));
}

}  // namespace

bool reads_class_targets(const NetDefinition& net) {
  const std::vector<NetInput> inputs = net.net_inputs(TANDEM_TRAIN);
  return !inputs.empty() && inputs.back().name == class_targets_input;
}

NetDefinition with_class_targets(const NetDefinition& net, const Registry& registry,
                                 int64_t classes) {
  if (reads_class_targets(net)) return net;
  const std::string label = label_of(net);
  NetDefinition result = net;
  result.layers.clear();
  bool found = false;
  for (const LayerDefinition& layer : net.layers) {
    const uint64_t traits = traits_of(registry, layer);
    const bool is_loss = (traits & TANDEM_LOSS) != 0 && layer.in_phase(TANDEM_TRAIN);
    if (!is_loss || !reads(layer, label)) {
      result.layers.push_back(layer);
      continue;
    }
    if ((traits & TANDEM_LABEL_OR_TARGETS) == 0) {
      throw error(
          "{}: takes class numbers, but with --mixup, --cutmix or --class-weights a sample has a "
          "weight for each class; {}{}",
          layer.title(), takers(registry), in_place(layer.location));
    }
    found = true;
    LayerDefinition trained = kept_to(layer, true, false);
    std::replace(trained.bottoms.begin(), trained.bottoms.end(), label,
                 std::string(class_targets_input));
    result.layers.push_back(std::move(trained));
    if (layer.in_phase(TANDEM_TEST)) result.layers.push_back(kept_to(layer, false, true));
  }
  if (!found) {
    throw error(
        "net '{}' has no loss of the labels: --mixup, --cutmix and --class-weights need one that "
        "takes a weight for each class; {}{}",
        net.name, takers(registry), in_place({net.file, 0, 0}));
  }
  result.layers.push_back(input_layer(classes, net.file));
  return result;
}

}  // namespace tandem
