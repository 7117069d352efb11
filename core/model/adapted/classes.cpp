#include "core/model/adapted/classes.h"

#include <algorithm>
#include <set>

#include "core/model/file/batch_norm.h"
#include "core/model/file/fields.h"
#include "core/model/file/net_phases.h"

namespace tandem {

namespace {

// The field with the number of a layer's outputs, in a block of any name; null: there is none.
const Field* num_output(const LayerDefinition& layer) {
  for (const Field& block : layer.body.fields) {
    if (!block.message) continue;
    if (const Field* outputs = block.message->find("num_output")) return outputs;
  }
  return nullptr;
}
// Losses of values or of pairs, or made of other layers with a loss_weight.
bool is_without_classes(const LayerDefinition& layer) {
  if (!layer.type.ends_with("Loss") && !layer.loss_weights.empty()) return true;
  return layer.type == "EuclideanLoss" || layer.type == "HuberLoss" ||
         layer.type == "SigmoidCrossEntropyLoss" || layer.type == "ContrastiveLoss";
}
bool are_exclusive(const LayerDefinition& a, const LayerDefinition& b) {
  return !(a.in_phase(TANDEM_TRAIN) && b.in_phase(TANDEM_TRAIN)) &&
         !(a.in_phase(TANDEM_TEST) && b.in_phase(TANDEM_TEST));
}

// The layer with a num_output whose scores layer `at` reads: upstream along first inputs. `passed`:
// gets those between them that have weights for each class, and no num_output.
std::optional<size_t> classifier_of(const NetDefinition& net, size_t at,
                                    std::set<size_t>* passed = nullptr) {
  const LayerDefinition* reader = &net.layers[at];
  for (size_t i = at; i-- > 0 && !reader->bottoms.empty();) {
    const LayerDefinition& layer = net.layers[i];
    if (!is_among(layer.tops, reader->bottoms[0]) || are_exclusive(*reader, layer)) continue;
    if (num_output(layer) != nullptr) return i;
    const bool has_weights =
        layer.type == "Bias" || layer.type == "Scale" || is_batch_norm(layer.type);
    if (has_weights && layer.bottoms.size() == 1 && passed != nullptr) passed->insert(i);
    reader = &layer;
  }
  return std::nullopt;
}

// Whether its inputs are channels of its output.
bool joins_channels(const LayerDefinition& layer) {
  if (layer.type != "Concat") return false;
  for (const Field* block : layer.body.all("concat_param")) {
    for (const char* name : {"axis", "concat_dim"}) {
      const Field* axis = block_of(*block, layer.title()).find(name);
      if (axis != nullptr && axis->text != "1") return false;
    }
  }
  return true;
}

// The classifiers of all losses and accuracies, as a net may have auxiliary heads; without any, the
// last layer with a num_output.
std::set<size_t> classifiers(const NetDefinition& net) {
  std::set<size_t> found;
  for (size_t i = 0; i < net.layers.size(); ++i) {
    if (!reads_scores(net.layers[i])) continue;
    if (const std::optional<size_t> classifier = classifier_of(net, i)) found.insert(*classifier);
  }
  for (size_t i = net.layers.size(); i-- > 0 && found.empty();) {
    if (num_output(net.layers[i]) != nullptr) found.insert(i);
  }
  if (found.empty()) {
    throw error(
        "net '{}' has no layer with a num_output before its loss, so it has no number of "
        "classes{}",
        net.name, in_file({net.file, 0, 0}));
  }
  return found;
}

int64_t outputs_of(const LayerDefinition& layer) {
  return positive_of(*num_output(layer), layer.title());
}

void set_outputs(LayerDefinition& layer, int64_t classes) {
  for (Field& block : layer.body.fields) {
    if (!block.message || block.message->find("num_output") == nullptr) continue;
    for (Field& field : own_block(block).fields) {
      if (field.name == "num_output") field.text = fmt::format("{}", classes);
    }
  }
}

std::string label_of(const NetDefinition& net) {
  for (const NetInput& input : net.net_inputs(TANDEM_TRAIN)) {
    if (input.role == NetInput::Role::label) return input.name;
  }
  throw error("net '{}' is fed with no labels{}", net.name, in_file({net.file, 0, 0}));
}

LayerDefinition input_layer(int64_t classes, const std::string& file) {
  const std::string text = fmt::format(
      "layer {{ name: \"{0}\" type: \"Input\" top: \"{0}\" include {{ phase: TRAIN }} "
      "input_param {{ shape {{ dim: 1 dim: {1} }} }} }}",
      class_targets_input, classes);
  return parse_net(parse_text_format(text, file), file).layers.front();
}

// Whether one of its inputs may be targets.
bool takes_targets(const tandem_layer_type& type) {
  const auto* const end = type.inputs + type.input_count;
  return std::any_of(type.inputs, end,
                     [](const tandem_input* input) { return input->role == TANDEM_INPUT_TARGETS; });
}

std::string types_with_targets(const Registry& registry) {
  std::vector<std::string> names;
  for (const std::string& name : registry.layer_types()) {
    const tandem_layer_type* type = registry.find_layer_type(name);
    if (type != nullptr && takes_targets(*type)) names.push_back(name);
  }
  return fmt::format("{} can", fmt::join(names, ", "));
}

}  // namespace

bool reads_scores(const LayerDefinition& layer) {
  return (layer.type.ends_with("Loss") && !is_without_classes(layer)) || layer.type == "Accuracy" ||
         layer.type == "Softmax";
}

int64_t top_k(const LayerDefinition& layer) {
  for (const Field* block : layer.body.all("accuracy_param")) {
    if (const Field* k = block_of(*block, layer.title()).find("top_k")) {
      return positive_of(*k, layer.title());
    }
  }
  return 1;
}

bool has_classes(const NetDefinition& net) {
  const auto any = [&net](const auto& condition) {
    return std::any_of(net.layers.begin(), net.layers.end(), condition);
  };
  return any(reads_scores) || !any(is_without_classes);
}

int64_t score_count(const NetDefinition& net, size_t at, size_t input) {
  const LayerDefinition* reader = &net.layers[at];
  if (input >= reader->bottoms.size()) return 0;
  std::string tensor = reader->bottoms[input];
  for (size_t i = at; i-- > 0;) {
    const LayerDefinition& layer = net.layers[i];
    if (!is_among(layer.tops, tensor) || are_exclusive(*reader, layer)) continue;
    if (num_output(layer) != nullptr) return outputs_of(layer);
    if (joins_channels(layer)) {
      int64_t sum = 0;
      for (size_t k = 0; k < layer.bottoms.size(); ++k) sum += score_count(net, i, k);
      return sum;
    }
    if (layer.bottoms.empty()) return 0;
    tensor = layer.bottoms[0];
    reader = &layer;
  }
  return 0;
}

int64_t class_count(const NetDefinition& net) {
  const size_t last = *classifiers(net).rbegin();
  for (size_t i = net.layers.size(); i-- > 0;) {
    if (reads_scores(net.layers[i]) && classifier_of(net, i) == last) {
      return score_count(net, i, 0);
    }
  }
  return outputs_of(net.layers[last]);
}

std::vector<std::string> classifier_names(const NetDefinition& net) {
  std::vector<std::string> names;
  for (const size_t i : classifiers(net)) names.push_back(net.layers[i].name);
  return names;
}

NetDefinition with_class_count(const NetDefinition& net, int64_t classes) {
  if (classes < 1) throw error("a net for {} classes: there must be at least 1", classes);
  const int64_t present = class_count(net);
  if (present == classes) return net;
  if (outputs_of(net.layers[*classifiers(net).rbegin()]) != present) {
    throw error(
        "net '{}': its {} scores are joined from several layers (Concat), so that no copy of it "
        "for {} classes can be made: write such a net{}",
        net.name, present, classes, in_file({net.file, 0, 0}));
  }
  NetDefinition adapted = net;
  std::set<size_t> changed;  // they begin anew, under other names
  for (const size_t i : classifiers(net)) {
    if (outputs_of(adapted.layers[i]) != present) continue;
    set_outputs(adapted.layers[i], classes);
    changed.insert(i);
  }
  for (size_t i = 0; i < net.layers.size(); ++i) {
    std::set<size_t> after;
    const std::optional<size_t> classifier =
        reads_scores(net.layers[i]) ? classifier_of(net, i, &after) : std::nullopt;
    if (classifier && changed.contains(*classifier)) changed.merge(after);
  }
  for (const size_t i : changed) {
    adapted.layers[i].name = fmt::format("{}_{}", adapted.layers[i].name, classes);
  }
  // A top-5 accuracy of three classes has no meaning.
  std::erase_if(adapted.layers, [classes](const LayerDefinition& layer) {
    return layer.type == "Accuracy" && top_k(layer) > 1 && top_k(layer) >= classes;
  });
  return adapted;
}

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
    // build_net() refuses an unknown type.
    const tandem_layer_type* type = registry.find_layer_type(layer.type);
    const bool is_loss =
        type != nullptr && (type->traits & TANDEM_LOSS) != 0 && layer.in_phase(TANDEM_TRAIN);
    if (!is_loss || !is_among(layer.bottoms, label)) {
      result.layers.push_back(layer);
      continue;
    }
    if (!takes_targets(*type)) {
      throw error(
          "{}: takes class numbers, but with --mixup, --cutmix or --class-weights a sample has a "
          "weight for each class; {}{}",
          layer.title(), types_with_targets(registry), in_file(layer.location));
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
        net.name, types_with_targets(registry), in_file({net.file, 0, 0}));
  }
  result.layers.push_back(input_layer(classes, net.file));
  return result;
}

}  // namespace tandem
