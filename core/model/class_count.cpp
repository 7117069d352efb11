// How many classes a net tells apart, and a copy of it that tells another number of them apart.
#include <algorithm>
#include <set>

#include "core/model/definition.h"
#include "core/model/fields.h"

namespace tandem {

namespace {

// The number of a layer's outputs, as every type with weights and outputs of its own choosing says
// it, in a block of any name; nullptr: it has none.
const Field* num_output(const LayerDefinition& layer) {
  for (const Field& block : layer.body.fields) {
    if (!block.message) continue;
    if (const Field* outputs = block.message->find("num_output")) return outputs;
  }
  return nullptr;
}
bool is_classifier(const LayerDefinition& layer) {
  return num_output(layer) != nullptr;
}
// These compare values with values, or pairs with each other; so does a loss put together from
// layers.
bool knows_no_classes(const LayerDefinition& layer) {
  if (!layer.type.ends_with("Loss") && !layer.loss_weights.empty()) return true;
  return layer.type == "EuclideanLoss" || layer.type == "SigmoidCrossEntropyLoss" ||
         layer.type == "ContrastiveLoss";
}
bool judges_scores(const LayerDefinition& layer) {
  return (layer.type.ends_with("Loss") && !knows_no_classes(layer)) || layer.type == "Accuracy" ||
         layer.type == "Softmax";
}
bool are_exclusive(const LayerDefinition& a, const LayerDefinition& b) {
  return !(a.in_phase(TANDEM_TRAIN) && b.in_phase(TANDEM_TRAIN)) &&
         !(a.in_phase(TANDEM_TEST) && b.in_phase(TANDEM_TEST));
}

// Upwards from layer `at` along first inputs to the layer that makes the scores; -1: none.
int classifier_above(const NetDefinition& net, int at) {
  while (!net.layers[static_cast<size_t>(at)].bottoms.empty()) {
    const LayerDefinition& layer = net.layers[static_cast<size_t>(at)];
    int producer = at - 1;
    for (; producer >= 0; --producer) {
      const LayerDefinition& above = net.layers[static_cast<size_t>(producer)];
      const auto& tops = above.tops;
      if (std::find(tops.begin(), tops.end(), layer.bottoms[0]) != tops.end() &&
          !are_exclusive(layer, above)) {
        break;
      }
    }
    if (producer < 0) return -1;
    if (is_classifier(net.layers[static_cast<size_t>(producer)])) return producer;
    at = producer;
  }
  return -1;
}

// Of every loss and accuracy (a net may have auxiliary heads); without any, the last in the file.
std::set<int> classifiers(const NetDefinition& net) {
  std::set<int> found;
  const int count = static_cast<int>(net.layers.size());
  for (int i = 0; i < count; ++i) {
    if (!judges_scores(net.layers[static_cast<size_t>(i)])) continue;
    const int classifier = classifier_above(net, i);
    if (classifier >= 0) found.insert(classifier);
  }
  for (int i = count - 1; i >= 0 && found.empty(); --i) {
    if (is_classifier(net.layers[static_cast<size_t>(i)])) found.insert(i);
  }
  if (found.empty()) {
    throw error(
        "net '{}' has no layer with a num_output before its loss, so it has no number of "
        "classes{}",
        net.name, in_place({net.file, 0, 0}));
  }
  return found;
}

int64_t outputs_of(const LayerDefinition& layer) {
  return positive_of(*num_output(layer), layer.title());
}

// Blocks are shared between copies of a definition, so a changed one is a new one.
void set_outputs(LayerDefinition& layer, int64_t classes) {
  for (Field& block : layer.body.fields) {
    if (!block.message || block.message->find("num_output") == nullptr) continue;
    block.message = std::make_shared<Message>(*block.message);
    for (Field& field : block.message->fields) {
      if (field.name == "num_output") field.text = fmt::format("{}", classes);
    }
  }
}

int64_t top_k(const LayerDefinition& layer) {
  for (const Field* block : layer.body.all("accuracy_param")) {
    if (const Field* k = block_of(*block, layer.title()).find("top_k")) {
      return positive_of(*k, layer.title());
    }
  }
  return 1;
}

}  // namespace

bool has_classes(const NetDefinition& net) {
  const auto any = [&net](const auto& condition) {
    return std::any_of(net.layers.begin(), net.layers.end(), condition);
  };
  return any(judges_scores) || !any(knows_no_classes);
}

int64_t class_count(const NetDefinition& net) {
  return outputs_of(net.layers[static_cast<size_t>(*classifiers(net).rbegin())]);
}

NetDefinition with_class_count(const NetDefinition& net, int64_t classes) {
  if (classes < 1) throw error("a net for {} classes cannot be: there must be at least 1", classes);
  const int64_t present = class_count(net);
  if (present == classes) return net;
  NetDefinition adapted = net;
  for (const int i : classifiers(net)) {
    LayerDefinition& layer = adapted.layers[static_cast<size_t>(i)];
    if (outputs_of(layer) != present) continue;
    set_outputs(layer, classes);
    layer.name = fmt::format("{}_{}", layer.name, classes);
  }
  // "Among the first five of three classes" says nothing.
  std::erase_if(adapted.layers, [classes](const LayerDefinition& layer) {
    return layer.type == "Accuracy" && top_k(layer) > 1 && top_k(layer) >= classes;
  });
  return adapted;
}

}  // namespace tandem
