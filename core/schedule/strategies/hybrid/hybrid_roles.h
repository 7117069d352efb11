// Who does what in the strategy `hybrid`: how many devices have the convolutions and how many the
// fully connected layers, and where in the net one hands over to the other.
#pragma once

#include <vector>

#include "core/schedule/strategies/strategy.h"

namespace tandem {

struct HybridRoles {
  std::vector<int> conv, fc;    // devices; as many conv devices for each FC device
  int last_conv = -1;           // layer: forward on conv devices, backward on FC devices
  bool extends_memory = false;  // the FC devices' solver state is in extended memory
  // The FC device that conv device number `i` works with.
  [[nodiscard]] int partner(size_t i) const { return fc[i / (conv.size() / fc.size())]; }
};

// Error, saying what would be right: fewer than two devices, numbers of devices that do not fit
// each other, a batch of fewer rows than conv devices, a net that is not convolutions followed by
// fully connected layers behind one last convolution.
[[nodiscard]] HybridRoles hybrid_roles(const StrategyInputs& inputs);

}  // namespace tandem
