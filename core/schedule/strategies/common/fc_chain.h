// The part of a net that the strategy `fc_parallel` divides by neurons: its last fully connected
// layers and what works on each neuron between them, one behind the other.
#pragma once

#include <vector>

#include "core/schedule/builder/strategy_inputs.h"

namespace tandem {

struct FcChain {
  std::vector<int> layers;  // in order; the first and the last are fully connected
  int quota = 1;            // gradient pieces that a round waits for
  bool eager = false;  // every round sends its errors, so the layer below has as many times more
  [[nodiscard]] bool has(int layer) const {
    return layer >= layers.front() && layer <= layers.back() && index_of(layer) >= 0;
  }
  [[nodiscard]] int index_of(int layer) const;  // -1: not in the chain
  // The next fully connected layer behind this layer of the chain; -1 behind the last one.
  [[nodiscard]] int above(const Net& net, int layer) const;
  // In which the layer goes backward on that many devices.
  [[nodiscard]] int64_t rounds(const Net& net, int layer, int devices) const;
};

// Its sums go over whole rows, so that they can be divided by inputs and by outputs.
[[nodiscard]] bool is_fully_connected(const Layer& layer);

// Error, saying what would be right: fewer than two devices, no such layer, fewer neurons than
// devices, weights of the chain that others share, a quota out of range, more rounds than can be.
// `quota` 0: one round, or two if eager.
[[nodiscard]] FcChain fc_chain(const StrategyInputs& inputs, int quota, bool eager);

}  // namespace tandem
