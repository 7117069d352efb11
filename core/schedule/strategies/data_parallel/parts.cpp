#include "core/schedule/strategies/data_parallel/parts.h"

#include <algorithm>
#include <set>

#include "core/base/error.h"
#include "core/base/strings.h"
#include "core/schedule/builder/plan_builder.h"

namespace tandem {

namespace {

// A copy between devices of unknown speed is taken as one within a host's memory.
constexpr double assumed_bandwidth = 8e9;

// What the prediction adds up: times on the device with the most rows.
class Prices {
 public:
  explicit Prices(const StrategyInputs& inputs)
      : in_(inputs), rows_(share(inputs.net->batch, inputs.devices, 0).count()) {}

  [[nodiscard]] double forward(int layer) const {
    return in_.costs->statistics_seconds(*in_.net, layer, LayerPass::forward_statistics, rows_) +
           in_.costs->pass_seconds(*in_.net, layer, LayerPass::forward, rows_);
  }
  [[nodiscard]] double backward(int layer) const {
    const Layer& l = in_.net->layers[size_t(layer)];
    const auto pass = [&](bool wanted, LayerPass which) {
      return wanted ? in_.costs->pass_seconds(*in_.net, layer, which, rows_) : 0;
    };
    return in_.costs->statistics_seconds(*in_.net, layer, LayerPass::backward_statistics, rows_) +
           pass(l.wants_backward_weights, LayerPass::backward_weights) +
           pass(l.wants_backward_data, LayerPass::backward_data);
  }
  // From one device to all others, or the reverse: the master's stream takes them in turn.
  [[nodiscard]] double transfers(int64_t bytes) const {
    const double bandwidth = in_.link.bandwidth > 0 ? in_.link.bandwidth : assumed_bandwidth;
    return (in_.devices - 1) * (in_.link.latency + static_cast<double>(bytes) / bandwidth);
  }
  // Gradients in, added.
  [[nodiscard]] double reduce(const std::vector<int>& weights) const {
    if (weights.empty()) return 0;
    const int64_t bytes = bytes_of(weights);
    const int64_t added = in_.devices > 1 ? (in_.devices + 1) * bytes : 0;
    return transfers(bytes) + in_.costs->moving_seconds("add", added);
  }
  [[nodiscard]] double update(const std::vector<int>& weights) const {
    if (weights.empty()) return 0;
    const int64_t bytes = bytes_of(weights);
    const double norms = in_.needs_norms ? in_.costs->moving_seconds("norms", 2 * bytes) : 0;
    return norms + in_.costs->moving_seconds("update", (3 + 2 * in_.solver_states) * bytes);
  }

 private:
  [[nodiscard]] int64_t bytes_of(const std::vector<int>& weights) const {
    return total_bytes(weight_ranges(*in_.net, weights));
  }

  const StrategyInputs& in_;
  int64_t rows_;
};

// How much later the forward of the conv part ends because its weights come layer by layer.
double exposed_conv_broadcast(const StrategyInputs& in, const Parts& parts, const Prices& prices) {
  double computed = 0, waiting = 0, arrived = 0;
  std::set<int> to_come(parts.conv_weights.begin(), parts.conv_weights.end());
  for (int layer = 0; layer < parts.split_layer; ++layer) {
    std::vector<int> mine;
    for (const int weight : in.net->layers[size_t(layer)].weights) {
      if (to_come.erase(weight) != 0) mine.push_back(weight);
    }
    if (!mine.empty()) arrived += prices.transfers(total_bytes(weight_ranges(*in.net, mine)));
    computed += prices.forward(layer);
    waiting = std::max(waiting, arrived) + prices.forward(layer);
  }
  return waiting - computed;
}

// The layers whose gradients are the last of their weights: where an FC part can begin.
std::vector<int> trained_layers(const Net& net) {
  std::vector<int> layers;
  std::set<int> seen;
  for (size_t i = 0; i < net.layers.size(); ++i) {
    bool has_new = false;
    for (const int weight : net.layers[i].weights) {
      if (net.weights[size_t(weight)].trained()) has_new |= seen.insert(weight).second;
    }
    if (has_new) layers.push_back(static_cast<int>(i));
  }
  return layers;
}

std::vector<std::string> layer_names(const Net& net) {
  std::vector<std::string> names;
  for (const Layer& layer : net.layers) names.push_back(layer.name);
  return names;
}

Parts parts_by_name(const Net& net, const std::string& name) {
  require_known_split(net, name);
  const int layer = net.find_layer(name);
  Parts parts = parts_at(net, layer);
  const std::vector<int> trained = trained_layers(net);
  const auto reject = [&](const char* part) {
    if (trained.size() < 2) {
      throw error(
          "--split {}: the {} part would have no weights to train: the only layer with any "
          "is '{}', so leave the split to 'auto'",
          name, part, net.layers[size_t(trained.front())].name);
    }
    throw error(
        "--split {}: the {} part would have no weights to train; the FC part may begin "
        "behind '{}' and up to '{}'",
        name, part, net.layers[size_t(trained.front())].name,
        net.layers[size_t(trained.back())].name);
  };
  if (parts.fc_weights.empty()) reject("FC");
  if (parts.conv_weights.empty()) reject("conv");
  parts.notes.push_back(fmt::format("split at '{}', as told", name));
  return parts;
}

Parts fastest_parts(const StrategyInputs& inputs) {
  const Net& net = *inputs.net;
  const std::vector<int> candidates = trained_layers(net);
  if (candidates.size() < 2) {
    Parts parts = parts_at(net, 0);
    parts.notes.push_back(
        fmt::format("'{}' is the only layer with weights to train: all is FC part",
                    net.layers[size_t(candidates.front())].name));
    return parts;
  }
  Parts best;
  double best_seconds = 0;
  for (size_t i = candidates.size(); i-- > 1;) {
    Parts parts = parts_at(net, candidates[i]);
    if (parts.conv_weights.empty() || parts.fc_weights.empty()) continue;
    const double seconds = predict_two_phase(inputs, parts);
    if (!best.fc_weights.empty() && seconds >= best_seconds) continue;
    best = std::move(parts);
    best_seconds = seconds;
  }
  best.notes.push_back(fmt::format("split at '{}', the smallest predicted step: {}",
                                   net.layers[size_t(best.split_layer)].name,
                                   human_seconds(best_seconds)));
  return best;
}

}  // namespace

void require_weights_to_train(const Net& net) {
  if (!trained_layers(net).empty()) return;
  throw error(
      "net '{}' has no weights to train: every lr_mult is 0, or no layer before the loss has any",
      net.name);
}

void require_known_split(const Net& net, const std::string& split) {
  if (split == "auto" || net.find_layer(split) >= 0) return;
  throw error("--split {}: net '{}' has no such layer{}", split, net.name,
              did_you_mean(split, layer_names(net)));
}

Parts parts_at(const Net& net, int split_layer) {
  Parts parts;
  parts.split_layer = split_layer;
  // A gradient is complete after its last user, which backward is the first layer.
  std::vector<int> first_user(net.weights.size(), -1);
  for (size_t i = net.layers.size(); i-- > 0;) {
    for (const int weight : net.layers[i].weights) first_user[size_t(weight)] = static_cast<int>(i);
  }
  for (size_t weight = 0; weight < net.weights.size(); ++weight) {
    if (!net.weights[weight].trained() || first_user[weight] < 0) continue;
    (first_user[weight] >= split_layer ? parts.fc_weights : parts.conv_weights)
        .push_back(static_cast<int>(weight));
  }
  return parts;
}

double predict_two_phase(const StrategyInputs& inputs, const Parts& parts) {
  const Prices prices(inputs);
  const Net& net = *inputs.net;
  double a = 0, b = 0, c = 0;
  for (int layer = 0; layer < static_cast<int>(net.layers.size()); ++layer) {
    a += prices.forward(layer);
    (layer >= parts.split_layer ? b : c) += prices.backward(layer);
  }
  const double n = prices.reduce(parts.conv_weights) + prices.update(parts.conv_weights);
  const double m = prices.reduce(parts.fc_weights);
  double fc_update = prices.update(parts.fc_weights);
  double exposed = prices.transfers(all_weights(net).count());
  if (inputs.options.hidden_broadcast) {
    fc_update += prices.transfers(total_bytes(weight_ranges(net, parts.fc_weights)));
    exposed = exposed_conv_broadcast(inputs, parts, prices);
  }
  if (inputs.clips_gradients) return a + b + std::max(c, m) + n + fc_update + exposed;
  return a + b + std::max(c, m + fc_update) + n + exposed;
}

Parts choose_parts(const StrategyInputs& inputs) {
  const Net& net = *inputs.net;
  require_weights_to_train(net);
  Parts parts = inputs.options.split == "auto" ? fastest_parts(inputs)
                                               : parts_by_name(net, inputs.options.split);
  parts.notes.push_back(test_alexnet_like(net, *inputs.costs, inputs.options).explanation);
  return parts;
}

}  // namespace tandem
