// The strategy `asymmetric` (docs/design/strategies.md §4): after a forward pass on all devices,
// group E computes the activation gradients, layer after layer, and group W the gradients of the
// weights and the updates that follow. Where no option is given, the groups, the division of the
// weights within W and the order of the tasks are chosen by the costs and links.
#pragma once

#include <string>

#include "core/schedule/strategies/common/strategy.h"

namespace tandem {

struct AsymmetricOptions {
  std::string groups;   // "E=0,2/W=1,3"; "": chosen
  std::string slices;   // "all", "large", "none"; "": chosen
  bool to_all = false;  // outputs go to all other devices, whether they need them or not
};
[[nodiscard]] const OptionTable<AsymmetricOptions>& asymmetric_options();

// Requires at least two devices, and a net whose layers each work on single samples.
[[nodiscard]] Strategy asymmetric_strategy();

}  // namespace tandem
