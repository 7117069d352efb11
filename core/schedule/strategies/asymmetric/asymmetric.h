// The strategy `asymmetric` (docs/design/strategies.md §4): after a forward pass on all devices,
// group E computes the activation gradients, layer after layer, and group W the gradients of the
// weights and the updates that follow. Which devices are in which group, how W divides the weights,
// and in which order the tasks stand, the costs and links decide where nothing is given.
#pragma once

#include <string>

#include "core/schedule/strategies/strategy.h"

namespace tandem {

struct AsymmetricOptions {
  std::string groups;  // "E=0,2/W=1,3"; "": chosen
  std::string slices;  // "all", "large", "none"; "": chosen
};
[[nodiscard]] const OptionTable<AsymmetricOptions>& asymmetric_options();

// It needs two devices or more, and a net whose layers each work on single samples.
[[nodiscard]] Strategy asymmetric_strategy();

}  // namespace tandem
