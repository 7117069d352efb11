#include "core/schedule/strategies/hybrid/hybrid_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "core/base/error.h"
#include "core/schedule/strategies/composed/fc_chain.h"

namespace tandem {
namespace {

// Its backward can run on a device that has not run its forward.
bool can_hand_over(const Layer& layer) {
  return !layer.weights.empty() && layer.has(TANDEM_PER_SAMPLE) && layer.has(TANDEM_SAVES_NOTHING);
}

// By layer: these depend on it, or it is one of them.
std::vector<bool> needed_by(const Net& net, const std::vector<int>& layers) {
  std::vector<bool> needed(net.layers.size(), false);
  for (const int layer : layers) needed[size_t(layer)] = true;
  for (size_t layer = net.layers.size(); layer-- > 0;) {
    if (!needed[layer]) continue;
    for (const int input : net.layers[layer].inputs) {
      if (const int producer = net.tensor(input).producer; producer >= 0) {
        needed[size_t(producer)] = true;
      }
    }
  }
  return needed;
}

bool is_of(const std::vector<int>& list, int number) {
  return std::find(list.begin(), list.end(), number) != list.end();
}

// By layer: it depends on one of these tensors.
std::vector<bool> layers_behind(const Net& net, const std::vector<int>& tensors) {
  std::vector<bool> behind(net.layers.size(), false);
  for (size_t layer = 0; layer < behind.size(); ++layer) {
    const std::vector<int>& inputs = net.layers[layer].inputs;
    behind[layer] = std::any_of(inputs.begin(), inputs.end(), [&](int input) {
      const int producer = net.tensor(input).producer;
      return is_of(tensors, input) || (producer >= 0 && behind[size_t(producer)]);
    });
  }
  return behind;
}

// A layer behind the boundary, and what it takes from before it.
struct PassedBy {
  int layer = -1, tensor = -1;
};
std::optional<PassedBy> passed_by(const Net& net, const HybridParts& parts) {
  for (size_t layer = 0; layer < net.layers.size(); ++layer) {
    if (!parts.on_fc[layer]) continue;
    for (const int input : net.layers[layer].inputs) {
      const int producer = net.tensor(input).producer;
      const bool is_known =
          producer < 0 || parts.on_fc[size_t(producer)] || is_of(parts.tensors, input);
      if (!is_known) return PassedBy{static_cast<int>(layer), input};
    }
  }
  return std::nullopt;
}

HybridParts parts_behind(const Net& net, int boundary, bool hands_over) {
  HybridParts parts;
  parts.boundary = boundary;
  parts.hands_over = hands_over;
  parts.tensors = net.layer(boundary).outputs;
  parts.on_fc = layers_behind(net, parts.tensors);
  return parts;
}

// The last fully connected layers that the last loss depends on: the first after which it depends
// on no layer with weights and images. -1: there is none.
int first_of_last_fc(const Net& net) {
  int loss = -1;
  for (const Scalar& scalar : net.scalars) {
    if (scalar.loss_weight != 0) loss = std::max(loss, scalar.layer);
  }
  if (loss < 0) return -1;
  const std::vector<bool> needed = needed_by(net, {loss});
  int first = -1;
  for (size_t layer = net.layers.size(); layer-- > 0;) {
    const Layer& l = net.layers[layer];
    if (!needed[layer] || l.weights.empty()) continue;
    const Shape& shape = net.tensor(l.outputs[0]).shape;
    if (is_fully_connected(l)) {
      first = static_cast<int>(layer);
    } else if (first >= 0 && shape.h * shape.w > 1) {
      break;
    }
  }
  return first;
}

// Where convolutions end in branches: the smallest tensor through which everything passes between
// them and the fully connected layers; the first of equal ones.
std::optional<HybridParts> smallest_boundary(const Net& net, int last_conv, int first_fc,
                                             const std::vector<bool>& needed) {
  std::optional<HybridParts> best;
  int64_t least = std::numeric_limits<int64_t>::max();
  for (int layer = last_conv + 1; layer < first_fc; ++layer) {
    const std::vector<int>& outputs = net.layer(layer).outputs;
    if (!needed[size_t(layer)] || outputs.size() != 1) continue;
    const Tensor& tensor = net.tensor(outputs[0]);
    const int64_t bytes = element_count(tensor.shape) * dtype_bytes(tensor.dtype);
    if (bytes >= least) continue;
    HybridParts parts = parts_behind(net, layer, false);
    if (!parts.on_fc[size_t(first_fc)] || passed_by(net, parts)) continue;
    best = std::move(parts);
    least = bytes;
  }
  return best;
}

// -1, 0, 1: conv devices have its weights, both kinds of devices, FC devices.
int side_of(const HybridParts& parts, int layer) {
  if (parts.hands_over && layer == parts.boundary) return 0;
  return parts.forward_on_fc(layer) ? 1 : -1;
}

void require_weights_on_one_side(const Net& net, const HybridParts& parts) {
  std::vector<int> first_user(net.weights.size(), -1);
  for (int layer = 0; layer < static_cast<int>(net.layers.size()); ++layer) {
    for (const int weight : net.layer(layer).weights) {
      int& first = first_user[size_t(weight)];
      if (first < 0) first = layer;
      if (side_of(parts, first) == side_of(parts, layer)) continue;
      throw error(
          "{}: it shares '{}' with layer '{}'; strategy 'hybrid' cannot share weights across {} "
          "'{}'{}",
          net.layer(layer).title(), net.weight(weight).name, net.layer(first).name,
          parts.hands_over ? "the last convolution" : "the boundary of its parts,",
          net.layer(parts.boundary).name, in_file(net.layer(layer).location));
    }
  }
}

void find_layers_aside(const Net& net, HybridParts& parts) {
  const std::vector<bool> needed = needed_by(net, {parts.boundary});
  std::vector<bool> is_shared(net.weights.size(), false), is_known(net.weights.size(), false);
  for (const Layer& layer : net.layers) {
    for (const int weight : layer.weights) {
      is_shared[size_t(weight)] = is_known[size_t(weight)];
      is_known[size_t(weight)] = true;
    }
  }
  parts.is_aside.assign(net.layers.size(), false);
  for (size_t layer = 0; layer < net.layers.size(); ++layer) {
    if (parts.on_fc[layer] || needed[layer]) continue;
    parts.is_aside[layer] = true;
    for (const int weight : net.layers[layer].weights) {
      // Their gradients are added up in the order of the net.
      if (is_shared[size_t(weight)]) return parts.is_aside.assign(net.layers.size(), false);
    }
  }
}

std::string to_text(const std::vector<std::pair<int, int>>& pairs) {
  std::string text;
  for (const auto& [conv, fc] : pairs) {
    text += fmt::format("{}{} and {}", text.empty() ? "" : ", ", conv, fc);
  }
  return text;
}

}  // namespace

HybridParts hybrid_parts(const Net& net) {
  const int first_fc = first_of_last_fc(net);
  if (first_fc < 0) {
    throw error(
        "strategy 'hybrid' needs convolutions followed by fully connected layers, and the last "
        "loss of net '{}' depends on no fully connected layer",
        net.name);
  }
  const std::vector<bool> needed = needed_by(net, {first_fc});
  int last_conv = first_fc - 1;
  while (last_conv >= 0 && !(needed[size_t(last_conv)] && can_hand_over(net.layer(last_conv)))) {
    --last_conv;
  }
  if (last_conv < 0) {
    throw error(
        "strategy 'hybrid' needs convolutions followed by fully connected layers, and net '{}' has "
        "no convolution before {}",
        net.name, net.layer(first_fc).title());
  }
  HybridParts parts = parts_behind(net, last_conv, true);
  if (const auto around = passed_by(net, parts)) {
    std::optional<HybridParts> joined = smallest_boundary(net, last_conv, first_fc, needed);
    if (!joined) {
      const Layer& layer = net.layer(around->layer);
      throw error(
          "{}: it takes '{}' from before the last convolution '{}'; strategy 'hybrid' needs a net "
          "in which everything passes through that convolution, or through one tensor between it "
          "and {}{}",
          layer.title(), net.tensor(around->tensor).name, net.layer(last_conv).name,
          net.layer(first_fc).title(), in_file(layer.location));
    }
    parts = std::move(*joined);
  }
  require_weights_on_one_side(net, parts);
  find_layers_aside(net, parts);
  return parts;
}

std::vector<std::pair<int, int>> hybrid_pairs(int devices) {
  std::vector<std::pair<int, int>> pairs;
  for (int fc = 1; 2 * fc <= devices; ++fc) {
    if ((devices - fc) % fc == 0) pairs.emplace_back(devices - fc, fc);
  }
  return pairs;
}

double busiest_seconds(const StrategyInputs& in, const HybridParts& parts,
                       std::pair<int, int> devices) {
  double conv = 0, fc = 0;
  const auto add = [&](int layer, LayerPass pass, bool by_fc) {
    const int64_t rows = share(in.net->batch, by_fc ? devices.second : devices.first, 0).count();
    (by_fc ? fc : conv) += in.costs->pass_seconds(*in.net, layer, pass, rows);
  };
  for (int layer = 0; layer < static_cast<int>(in.net->layers.size()); ++layer) {
    add(layer, LayerPass::forward, parts.forward_on_fc(layer));
    if (!in.net->layer(layer).has_backward()) continue;
    add(layer, LayerPass::backward, parts.backward_on_fc(layer));
  }
  return std::max(conv, fc);
}

std::pair<int, int> choose_hybrid_pair(const StrategyInputs& in, const HybridParts& parts, int conv,
                                       int fc) {
  std::vector<std::pair<int, int>> pairs = hybrid_pairs(in.devices);
  const std::vector<std::pair<int, int>> all = pairs;
  std::erase_if(pairs, [&](const auto& pair) {
    return (conv > 0 && pair.first != conv) || (fc > 0 && pair.second != fc);
  });
  if (pairs.empty()) {
    throw error(
        "{}{}{}: on {} devices strategy 'hybrid' can have {} (conv and FC devices: together all, "
        "and as many conv devices for each FC device)",
        conv > 0 ? fmt::format("--conv-devices {}", conv) : "", conv > 0 && fc > 0 ? " and " : "",
        fc > 0 ? fmt::format("--fc-devices {}", fc) : "", in.devices, to_text(all));
  }
  return *std::min_element(pairs.begin(), pairs.end(), [&](const auto& a, const auto& b) {
    return busiest_seconds(in, parts, a) < busiest_seconds(in, parts, b);
  });
}

}  // namespace tandem
