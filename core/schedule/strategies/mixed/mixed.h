// The strategy `mixed` (docs/design/strategies.md §6): each fully connected layer is divided by
// neurons over groups of some size, or it is data-parallel like all others. The sizes, the
// reduction and the buckets are those with the shortest simulated step; then the tasks are put in
// the order in which the following steps need them. Published methods are special cases: no layer
// divided is `layerwise`, every layer divided by all devices is `fc_parallel`.
#pragma once

#include <string>

#include "core/schedule/strategies/common/strategy.h"
#include "core/schedule/strategies/data_parallel/layerwise.h"

namespace tandem {

struct MixedOptions : LayerwiseOptions {
  // "fc6=4,fc7=4": sizes of groups; "all=4"; "none"; "": chosen.
  std::string divide;
  int pieces = 0;  // of a part of a ring, at most; 0: chosen
};
[[nodiscard]] const OptionTable<MixedOptions>& mixed_options();

[[nodiscard]] Strategy mixed_strategy();

}  // namespace tandem
