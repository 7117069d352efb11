#include "core/schedule/strategies/composed/fc_chain.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"

namespace tandem {
namespace {

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
  const Shape& in = net.tensor(layer.inputs[0]).shape;
  const Shape& out = net.tensor(layer.outputs[0]).shape;
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
    const Tensor& input = net.tensor(net.layer(layer).inputs[0]);
    if (input.producer < 0 || input.consumers.size() != 1) break;
    layer = input.producer;
    const Layer& upstream = net.layer(layer);
    if (!works_by_neuron(net, upstream) && !can_be_divided(net, upstream)) break;
    layers.push_back(layer);
    if (is_fully_connected(upstream)) first_fc = layers.size() - 1;
  }
  layers.resize(first_fc + 1);
  std::reverse(layers.begin(), layers.end());
  return layers;
}

}  // namespace

bool is_fully_connected(const Layer& layer) {
  return !layer.weights.empty() && layer.has(TANDEM_SLICED_INPUTS);
}

bool FcChain::has(int layer) const {
  return std::binary_search(layers.begin(), layers.end(), layer);
}

std::vector<int> FcChain::elementwise_after(int layer) const {
  const auto begin = std::upper_bound(layers.begin(), layers.end(), layer);
  const auto next = std::upper_bound(linear.begin(), linear.end(), layer);
  if (next == linear.end()) return {};
  return {begin, std::lower_bound(begin, layers.end(), *next)};
}

std::vector<FcChain> fc_chains(const Net& net) {
  std::vector<FcChain> chains;
  std::vector<bool> taken(net.layers.size(), false);
  for (size_t last = net.layers.size(); last-- > 0;) {
    const Layer& layer = net.layers[last];
    if (taken[last] || !can_be_divided(net, layer) || layer.dtype != TANDEM_FLOAT32) continue;
    FcChain chain;
    chain.layers = walk_back(net, static_cast<int>(last));
    for (const int index : chain.layers) {
      taken[size_t(index)] = true;
      if (is_fully_connected(net.layer(index))) chain.linear.push_back(index);
    }
    chains.push_back(std::move(chain));
  }
  std::reverse(chains.begin(), chains.end());
  return chains;
}

FcChain part_of(const FcChain& chain, size_t first, size_t last) {
  FcChain part;
  part.linear.assign(chain.linear.begin() + std::ptrdiff_t(first),
                     chain.linear.begin() + std::ptrdiff_t(last) + 1);
  for (const int layer : chain.layers) {
    if (layer >= part.linear.front() && layer <= part.linear.back()) part.layers.push_back(layer);
  }
  return part;
}

std::vector<FcChain> chains_over_all_devices(const StrategyInputs& inputs) {
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
                in_file(last->location));
  }
  if (const Layer& layer = *last; layer.dtype != TANDEM_FLOAT32) {
    throw error(
        "{}: strategy 'fc_parallel' adds up parts of its gradients in float32, but it computes in "
        "{}: use --precision float32 or another strategy{}",
        layer.title(), dtype_name(layer.dtype), in_file(layer.location));
  }
  std::vector<FcChain> chains = fc_chains(net);
  const auto narrow = [&](int layer) {
    return net.tensor(net.layer(layer).outputs[0]).shape.c < inputs.devices;
  };
  for (const int index : chains.back().layers) {
    if (!narrow(index)) continue;
    const Layer& layer = net.layer(index);
    const int64_t neurons = net.tensor(layer.outputs[0]).shape.c;
    throw error("{}: its {} neurons cannot be divided over {} devices: use {} or fewer{}",
                layer.title(), neurons, inputs.devices, neurons, in_file(layer.location));
  }
  std::erase_if(chains, [&](const FcChain& chain) {
    return std::any_of(chain.layers.begin(), chain.layers.end(), narrow);
  });
  return chains;
}

}  // namespace tandem
