#include "core/model/adapted/target_losses.h"

#include <algorithm>
#include <array>
#include <set>

#include "core/model/adapted/classes.h"
#include "core/model/file/fields.h"

namespace tandem {
namespace {

bool fits(const LayerDefinition& loss, int64_t task) {
  if (task == TANDEM_TASK_LABELS) return loss.type == "SigmoidCrossEntropyLoss";
  return loss.type == "EuclideanLoss" || loss.type == "HuberLoss";
}

bool has_trait(const Registry& registry, const LayerDefinition& layer, uint64_t trait) {
  const tandem_layer_type* type = registry.find_layer_type(layer.type);
  return type != nullptr && (type->traits & trait) != 0;
}

// Layers that a loss of classes needs between the classifier and itself, and others must not have.
bool stands_before_loss(const LayerDefinition& layer) {
  static constexpr std::array types{"Softmax", "ReLU", "Sigmoid"};
  return layer.bottoms.size() == 1 && layer.tops.size() == 1 &&
         std::find(types.begin(), types.end(), layer.type) != types.end();
}

class Exchange {
 public:
  Exchange(const NetDefinition& net, const Registry& registry, int64_t task, std::string loss)
      : registry_(registry), task_(task), loss_(std::move(loss)), net_(net) {
    for (const NetInput& input : net.net_inputs(TANDEM_TRAIN)) {
      if (input.role == NetInput::Role::label) labels_.insert(input.name);
    }
    for (const NetInput& input : net.net_inputs(TANDEM_TEST)) {
      if (input.role == NetInput::Role::label) labels_.insert(input.name);
    }
    labels_.insert(class_targets_input);
  }

  TargetNet run(int64_t count) {
    for (size_t i = 0; i < net_.layers.size(); ++i) {
      if (is_loss(net_.layers[i])) exchange(i);
    }
    if (losses_ == 0) {
      throw error(
          "net '{}' has no loss of the labels, which several labels or numbers could take the "
          "place "
          "of{}",
          net_.name, in_file({net_.file, 0, 0}));
    }
    leave_out();
    std::erase_if(net_.layers, [](const LayerDefinition& layer) {
      return layer.is_data() && layer.tops == std::vector<std::string>{class_targets_input};
    });
    net_.layers.push_back(input_layer(count));
    TargetNet result{std::move(net_), {}};
    for (const std::string& type : exchanged_) {
      result.notes.push_back(fmt::format("the net's loss is {} instead of {}",
                                         loss_.empty() ? usual_loss(task_) : loss_.c_str(), type));
    }
    if (!left_out_.empty()) {
      result.notes.push_back(
          fmt::format("left out, as they are of classes: {}", fmt::join(left_out_, ", ")));
    }
    return result;
  }

 private:
  [[nodiscard]] bool reads_label(const LayerDefinition& layer) const {
    return layer.bottoms.size() > 1 && labels_.contains(layer.bottoms[1]);
  }
  [[nodiscard]] bool is_loss(const LayerDefinition& layer) const {
    return reads_label(layer) &&
           (layer.type.ends_with("Loss") || has_trait(registry_, layer, TANDEM_LOSS));
  }

  void exchange(size_t at) {
    ++losses_;
    LayerDefinition& layer = net_.layers[at];
    const bool stays = loss_.empty() ? fits(layer, task_) : layer.type == loss_;
    if (!stays) skip_to_scores(at);
    layer.bottoms = {layer.bottoms[0], class_targets_input};
    if (stays) return;
    exchanged_.insert(layer.type);
    layer.type = loss_.empty() ? usual_loss(task_) : loss_;
    if (layer.tops.size() > 1) layer.tops.resize(1);
    std::erase_if(layer.body.fields,
                  [](const Field& field) { return field.name.ends_with("_param"); });
  }

  // The loss at `at` reads what the layers before it read that are for classes only.
  void skip_to_scores(size_t at) {
    for (size_t i = at; i-- > 0;) {
      LayerDefinition& before = net_.layers[i];
      const std::string read = net_.layers[at].bottoms[0];
      if (!is_among(before.tops, read)) continue;
      if (before.type == "Pooling" && !before.bottoms.empty()) {
        drop_in_place(i, before.bottoms[0]);  // an activation of scores that are averaged
        return;
      }
      if (!stands_before_loss(before)) return;
      if (before.bottoms[0] == before.tops[0]) {
        dropped_.insert(i);
      } else {
        net_.layers[at].bottoms[0] = before.bottoms[0];
      }
    }
  }
  void drop_in_place(size_t end, const std::string& tensor) {
    for (size_t i = end; i-- > 0;) {
      const LayerDefinition& layer = net_.layers[i];
      if (!is_among(layer.tops, tensor)) continue;
      if (!stands_before_loss(layer) || layer.bottoms[0] != tensor) return;
      dropped_.insert(i);
    }
  }

  // Metrics of classes, and a Softmax whose result nothing reads.
  void leave_out() {
    std::vector<LayerDefinition> kept;
    for (size_t i = 0; i < net_.layers.size(); ++i) {
      const LayerDefinition& layer = net_.layers[i];
      const bool is_metric = !is_loss(layer) && !layer.is_data() &&
                             std::any_of(layer.bottoms.begin(), layer.bottoms.end(),
                                         [&](const auto& one) { return labels_.contains(one); });
      const bool is_unread = layer.type == "Softmax" && layer.tops.size() == 1 && !is_read(i);
      if (is_metric || is_unread || dropped_.contains(i)) {
        left_out_.push_back(layer.title());
      } else {
        kept.push_back(layer);
      }
    }
    net_.layers = std::move(kept);
  }
  [[nodiscard]] bool is_read(size_t at) const {
    return std::any_of(net_.layers.begin() + static_cast<ptrdiff_t>(at) + 1, net_.layers.end(),
                       [&](const LayerDefinition& layer) {
                         return is_among(layer.bottoms, net_.layers[at].tops[0]);
                       });
  }

  [[nodiscard]] LayerDefinition input_layer(int64_t count) const {
    const std::string text = fmt::format(
        "layer {{ name: \"{0}\" type: \"Input\" top: \"{0}\" "
        "input_param {{ shape {{ dim: 1 dim: {1} }} }} }}",
        class_targets_input, count);
    return parse_net(parse_text_format(text, net_.file), net_.file).layers.front();
  }

  const Registry& registry_;
  int64_t task_;
  std::string loss_;
  NetDefinition net_;
  std::set<std::string> labels_, exchanged_;
  std::set<size_t> dropped_;
  std::vector<std::string> left_out_;
  int losses_ = 0;
};

}  // namespace

const char* usual_loss(int64_t task) {
  return task == TANDEM_TASK_LABELS ? "SigmoidCrossEntropyLoss" : "HuberLoss";
}

TargetNet with_target_losses(const NetDefinition& net, const Registry& registry, int64_t task,
                             int64_t count, const std::string& loss) {
  return Exchange(with_class_count(net, count), registry, task, loss).run(count);
}

bool tests_targets(const NetDefinition& net) {
  const std::vector<NetInput> inputs = net.net_inputs(TANDEM_TEST);
  return !inputs.empty() && inputs.back().name == class_targets_input;
}

}  // namespace tandem
