// Who does what in the strategy `asymmetric`: which devices compute errors, which weights.
#pragma once

#include <string>
#include <vector>

#include "core/schedule/strategies/strategy.h"

namespace tandem {

struct AsymmetricGroups {
  std::vector<int> errors, weights;           // devices: the groups E and W
  [[nodiscard]] std::string to_text() const;  // "E=0,2/W=1,3"
};

// Those to choose from: as told; else neighbours of the topology in different groups; without a
// topology E with the first device, the first two, ... all but one. Error, saying what would be
// right: fewer than two devices, text that is no pair of groups, a group that is empty, a device
// that is in none or in both or is not there, a layer that mixes samples.
[[nodiscard]] std::vector<AsymmetricGroups> asymmetric_groups(const StrategyInputs& inputs);

}  // namespace tandem
