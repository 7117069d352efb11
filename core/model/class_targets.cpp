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

}  // namespace

bool reads_class_targets(const NetDefinition& net) {
  const std::vector<NetInput> inputs = net.net_inputs(TANDEM_TRAIN);
  return !inputs.empty() && inputs.back().name == class_targets_input;
}

NetDefinition with_class_targets(const NetDefinition& net, int64_t classes) {
  if (reads_class_targets(net)) return net;
  const std::string label = label_of(net);
  NetDefinition result = net;
  result.layers.clear();
  bool found = false;
  for (const LayerDefinition& layer : net.layers) {
    const bool is_loss = layer.type.ends_with("Loss") && layer.in_phase(TANDEM_TRAIN);
    if (!is_loss || !reads(layer, label)) {
      result.layers.push_back(layer);
      continue;
    }
    if (layer.type != "SoftmaxWithLoss") {
      throw error(
          "{}: takes class numbers, but with mixup, CutMix or class weights a sample has a "
          "weight for each class; SoftmaxWithLoss takes both{}",
          layer.title(), in_place(layer.location));
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
        "net '{}' has no SoftmaxWithLoss of the labels: mixup, CutMix and class weights need "
        "one{}",
        net.name, in_place({net.file, 0, 0}));
  }
  result.layers.push_back(input_layer(classes, net.file));
  return result;
}

}  // namespace tandem
