// The part of a net that the strategy `fc_parallel` divides by neurons: its last fully connected
// layers and the element-wise layers between them, each of which feeds only the next.
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
// Error, saying what would be right: fewer than two devices, no such layer, fewer neurons than
// devices, weights that others share, another precision than float32.
[[nodiscard]] FcChain fc_chain(const StrategyInputs& inputs);

}  // namespace tandem
