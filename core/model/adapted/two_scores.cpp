#include "core/model/adapted/two_scores.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/text/strings.h"
#include "core/model/adapted/classes.h"
#include "core/model/file/fields.h"

namespace tandem {
namespace {

std::set<std::string> labels_of(const NetDefinition& net) {
  std::set<std::string> labels;
  for (const int32_t phase : {TANDEM_TRAIN, TANDEM_TEST}) {
    for (const NetInput& input : net.net_inputs(phase)) {
      if (input.role == NetInput::Role::label) labels.insert(input.name);
    }
  }
  return labels;
}

std::string scores_name(const std::string& output) {
  return output + "_classes";
}

// Half of the output for class 1, and minus half of it for class 0: their difference decides.
std::vector<LayerDefinition> layers_of_scores(const std::string& output, const std::string& file) {
  const std::string read = quote(output), zero = quote(output + "_class_0"),
                    one = quote(output + "_class_1");
  const std::string text = fmt::format(
      "layer {{ name: {1} type: 'Power' bottom: {0} top: {1} power_param {{ scale: -0.5 }} }} "
      "layer {{ name: {2} type: 'Power' bottom: {0} top: {2} power_param {{ scale: 0.5 }} }} "
      "layer {{ name: {3} type: 'Concat' bottom: {1} bottom: {2} top: {3} }}",
      read, zero, one, quote(scores_name(output)));
  return parse_net(parse_text_format(text, file), file).layers;
}

// With the divisor that is usual for the loss before: all samples of the batch.
void make_softmax_loss(LayerDefinition& loss) {
  loss.type = "SoftmaxWithLoss";
  if (loss.body.find("loss_param") != nullptr) return;
  loss.body.add_block("loss_param").add("normalization", "BATCH_SIZE");
}

class Rewriter {
 public:
  explicit Rewriter(const NetDefinition& net) : net_(net), labels_(labels_of(net)) {
    for (size_t i = 0; i < net.layers.size(); ++i) {
      const LayerDefinition& layer = net.layers[i];
      if (is_loss(layer) && score_count(net, i, 0) == 1) outputs_.insert(layer.bottoms[0]);
    }
    for (const LayerDefinition& layer : net.layers) {
      const bool is_sigmoid = layer.type == "Sigmoid" && layer.bottoms.size() == 1 &&
                              layer.tops.size() == 1 && layer.tops != layer.bottoms;
      if (is_sigmoid && outputs_.contains(layer.bottoms[0])) {
        probabilities_.emplace(layer.tops[0], layer.bottoms[0]);
      }
    }
  }

  std::optional<NetDefinition> run() const {
    if (outputs_.empty()) return std::nullopt;
    NetDefinition result = net_;
    result.layers.clear();
    std::set<std::string> written;
    for (LayerDefinition layer : net_.layers) {
      if (is_only_shown(layer)) continue;
      const std::string output = judged_by(layer);
      if (!output.empty()) {
        if (written.insert(output).second) {
          for (LayerDefinition& one : layers_of_scores(output, net_.file)) {
            result.layers.push_back(std::move(one));
          }
        }
        layer.bottoms[0] = scores_name(output);
        if (is_loss(layer)) make_softmax_loss(layer);
      }
      result.layers.push_back(std::move(layer));
    }
    return result;
  }

 private:
  [[nodiscard]] bool reads_label(const LayerDefinition& layer) const {
    return layer.bottoms.size() > 1 && labels_.contains(layer.bottoms[1]);
  }
  [[nodiscard]] bool is_loss(const LayerDefinition& layer) const {
    return layer.type == "SigmoidCrossEntropyLoss" && reads_label(layer);
  }
  // The output that a loss or an accuracy compares with the label; "": it is neither.
  [[nodiscard]] std::string judged_by(const LayerDefinition& layer) const {
    if (!is_loss(layer) && !(layer.type == "Accuracy" && reads_label(layer))) return "";
    const auto probability = probabilities_.find(layer.bottoms[0]);
    if (layer.type == "Accuracy" && probability != probabilities_.end()) return probability->second;
    return outputs_.contains(layer.bottoms[0]) ? layer.bottoms[0] : "";
  }
  // A probability of class 1 that nothing reads but an accuracy: the two scores give both.
  [[nodiscard]] bool is_only_shown(const LayerDefinition& layer) const {
    return layer.tops.size() == 1 && probabilities_.contains(layer.tops[0]) &&
           std::none_of(net_.layers.begin(), net_.layers.end(), [&](const auto& reader) {
             return is_among(reader.bottoms, layer.tops[0]) && judged_by(reader).empty();
           });
  }

  const NetDefinition& net_;
  std::set<std::string> labels_, outputs_;
  std::map<std::string, std::string> probabilities_;  // of these outputs, by their names
};

}  // namespace

std::optional<NetDefinition> with_two_scores(const NetDefinition& net) {
  return Rewriter(net).run();
}

}  // namespace tandem
