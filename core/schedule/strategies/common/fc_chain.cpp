#include "core/schedule/strategies/common/fc_chain.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"
namespace tandem {

namespace {

std::string place(const Layer& layer) {
  return layer.location.file.empty() ? "" : fmt::format(" ({})", to_string(layer.location));
}

int users_of(const Net& net, int weight) {
  int users = 0;
  for (const Layer& layer : net.layers) {
    users += static_cast<int>(std::count(layer.weights.begin(), layer.weights.end(), weight));
  }
  return users;
}

bool shares_weights(const Net& net, const Layer& layer) {
  return std::any_of(layer.weights.begin(), layer.weights.end(),
                     [&](int weight) { return users_of(net, weight) > 1; });
}

// Whether a slice of the layer works on a slice of its input, neuron by neuron.
bool works_by_neuron(const Net& net, const Layer& layer) {
  if (!layer.weights.empty() || !layer.has(TANDEM_PER_SAMPLE | TANDEM_SLICED_OUTPUTS)) return false;
  if (layer.inputs.size() != 1 || layer.outputs.size() != 1) return false;
  const Shape& in = net.tensors[size_t(layer.inputs[0])].shape;
  const Shape& out = net.tensors[size_t(layer.outputs[0])].shape;
  return in.c == out.c && in.h * in.w == 1 && out.h * out.w == 1;
}

bool can_be_divided(const Net& net, const Layer& layer) {
  return is_fully_connected(layer) && layer.has(TANDEM_SLICED_OUTPUTS) &&
         layer.has(TANDEM_SAVES_NOTHING) && layer.inputs.size() == 1 && layer.outputs.size() == 1 &&
         !shares_weights(net, layer);
}

// From the last fully connected layer towards the data, as far as one feeds only the next.
std::vector<int> walk_back(const Net& net, int last) {
  std::vector<int> layers{last};
  size_t first_fc = 0;
  for (int layer = last;;) {
    const Tensor& input = net.tensors[size_t(net.layers[size_t(layer)].inputs[0])];
    if (input.producer < 0 || input.consumers.size() != 1) break;
    layer = input.producer;
    const Layer& below = net.layers[size_t(layer)];
    if (!works_by_neuron(net, below) && !can_be_divided(net, below)) break;
    layers.push_back(layer);
    if (is_fully_connected(below)) first_fc = layers.size() - 1;
  }
  layers.resize(first_fc + 1);
  std::reverse(layers.begin(), layers.end());
  return layers;
}

int quota_of(int devices, int quota, bool eager) {
  if (quota > devices) {
    throw error(
        "--quota {}: a round waits for at least 1 and at most {} gradient pieces, one of each device",
        quota, devices);
  }
  if (eager && quota == devices) {
    throw error(
        "--eager with --quota {} on {} devices: there is one round only, whose gradients are sent "
        "at once anyway; use a --quota of at most {}",
        quota, devices, devices - 1);
  }
  if (quota > 0) return quota;
  return eager ? (devices + 1) / 2 : devices;
}

// Rounds multiply from layer to layer where each sends its errors.
void require_few_rounds(const Net& net, const FcChain& chain, int devices) {
  constexpr int64_t most = 256;
  const Layer& first = net.layers[size_t(chain.layers.front())];
  const int64_t rounds = chain.rounds(net, chain.layers.front(), devices);
  if (rounds <= most) return;
  throw error(
      "{}: with --eager and {} of {} gradient pieces a round it would go backward in {} rounds, at "
      "most {} are allowed: use a larger --quota, or no --eager{}",
      first.title(), chain.quota, devices, rounds, most, place(first));
}

}  // namespace

bool is_fully_connected(const Layer& layer) {
  return !layer.weights.empty() && layer.has(TANDEM_SLICED_INPUTS);
}

int FcChain::index_of(int layer) const {
  const auto at = std::find(layers.begin(), layers.end(), layer);
  return at == layers.end() ? -1 : static_cast<int>(at - layers.begin());
}

int FcChain::above(const Net& net, int layer) const {
  for (size_t i = size_t(index_of(layer)) + 1; i < layers.size(); ++i) {
    if (is_fully_connected(net.layers[size_t(layers[i])])) return layers[i];
  }
  return -1;
}

int64_t FcChain::rounds(const Net& net, int layer, int devices) const {
  constexpr int64_t enough = int64_t{1} << 40;
  const int64_t each = (devices + quota - 1) / quota;
  if (!eager || above(net, layer) < 0) return each;
  return std::min(enough, each * rounds(net, above(net, layer), devices));
}

FcChain fc_chain(const StrategyInputs& inputs, int quota, bool eager) {
  const Net& net = *inputs.net;
  if (inputs.devices < 2) {
    throw error(
        "strategy 'fc_parallel' divides fully connected layers over at least 2 devices: use "
        "--devices cpu:2 or more");
  }
  const auto last = std::find_if(net.layers.rbegin(), net.layers.rend(), is_fully_connected);
  if (last == net.layers.rend()) {
    throw error(
        "strategy 'fc_parallel' divides fully connected layers by neurons, and net '{}' has none",
        net.name);
  }
  if (!can_be_divided(net, *last)) {
    throw error("{}: strategy 'fc_parallel' cannot divide it: it {}{}", last->title(),
                shares_weights(net, *last) ? "shares its weights with another layer"
                                           : "has several inputs or outputs",
                place(*last));
  }
  if (const Layer& layer = *last; layer.dtype != TANDEM_FLOAT32) {
    throw error(
        "{}: strategy 'fc_parallel' adds up parts of its gradients in float32, but it computes in "
        "{}: use --precision float32 or another strategy{}",
        layer.title(), dtype_name(layer.dtype), place(layer));
  }
  FcChain chain;
  chain.layers = walk_back(net, static_cast<int>(net.layers.rend() - last) - 1);
  for (const int index : chain.layers) {
    const Layer& layer = net.layers[size_t(index)];
    const int64_t neurons = net.tensors[size_t(layer.outputs[0])].shape.c;
    if (neurons >= inputs.devices) continue;
    throw error("{}: its {} neurons cannot be divided over {} devices: use {} or fewer{}",
                layer.title(), neurons, inputs.devices, neurons, place(layer));
  }
  chain.quota = quota_of(inputs.devices, quota, eager);
  chain.eager = eager;
  require_few_rounds(net, chain, inputs.devices);
  return chain;
}

}  // namespace tandem
