// The parts of a net that can be divided by neurons: fully connected layers and the element-wise
// layers between them, each of which feeds only the next.
#pragma once

#include <string>
#include <vector>

#include "core/schedule/builder/strategy_inputs.h"

namespace tandem {

struct FcChain {
  std::vector<int> layers;  // in the order of the net; the first and the last are fully connected
  std::vector<int> linear;  // those that are fully connected
  [[nodiscard]] bool has(int layer) const;
  // The element-wise layers between this fully connected layer and the next one, in order.
  [[nodiscard]] std::vector<int> elementwise_after(int layer) const;
};

// Its sums go over whole rows, so that they can be divided by inputs and by outputs.
[[nodiscard]] bool is_fully_connected(const Layer& layer);
// All that can be divided over groups of two devices at least, in the order of the net.
[[nodiscard]] std::vector<FcChain> fc_chains(const Net& net);
// The chain's linear layers `first` up to `last` of chain.linear, and what is between them.
[[nodiscard]] FcChain part_of(const FcChain& chain, size_t first, size_t last);
// Those that `fc_parallel` divides over all devices: all with enough neurons. Error, saying what
// would be right, if the net's last fully connected layers are not among them: fewer than two
// devices, no such layer, fewer neurons than devices, weights that others share, another precision
// than float32.
[[nodiscard]] std::vector<FcChain> chains_over_all_devices(const StrategyInputs& inputs);

}  // namespace tandem
