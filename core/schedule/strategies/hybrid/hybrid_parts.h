// Which layers of a net the conv devices of the strategy `hybrid` run and which its FC devices, and
// how many devices of each kind there are.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/schedule/builder/strategy_inputs.h"

namespace tandem {

struct HybridParts {
  // By layer: FC devices run its forward pass. They are all that follow the boundary; conv devices
  // have the others, auxiliary heads among them.
  std::vector<bool> on_fc;
  // By layer of the conv devices: nothing on FC devices depends on it, nor do its weights have
  // other users.
  std::vector<bool> is_aside;
  // The layer whose outputs pass from conv devices to FC devices.
  int boundary = -1;
  // It is the last convolution, through which everything passes: FC devices run its backward pass.
  // Otherwise convolutions end in several branches, and the boundary is what joins them.
  bool hands_over = true;
  std::vector<int> tensors;  // the boundary's outputs

  [[nodiscard]] bool forward_on_fc(int layer) const { return on_fc[size_t(layer)]; }
  [[nodiscard]] bool backward_on_fc(int layer) const {
    return on_fc[size_t(layer)] || (hands_over && layer == boundary);
  }
};

// Divides before the last fully connected layers that the last loss depends on. Error, with the
// layer that prevents it, for a net without convolutions before them, one whose layers pass the
// boundary by, or share weights across it.
[[nodiscard]] HybridParts hybrid_parts(const Net& net);

// The possible numbers of (conv, FC) devices.
[[nodiscard]] std::vector<std::pair<int, int>> hybrid_pairs(int devices);
// Seconds of a step's passes on the busiest device.
[[nodiscard]] double busiest_seconds(const StrategyInputs& inputs, const HybridParts& parts,
                                     std::pair<int, int> devices);
// The pair with the shortest of these, with the given numbers (0: any). Error if there is none.
[[nodiscard]] std::pair<int, int> choose_hybrid_pair(const StrategyInputs& inputs,
                                                     const HybridParts& parts, int conv, int fc);

}  // namespace tandem
