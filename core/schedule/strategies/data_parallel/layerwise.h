// The strategy `layerwise` (docs/design/strategies.md §2): every layer's gradient travels as soon
// as it exists, while the layers before it go backward. The new weights are sent out while the next
// step goes forward, in the order in which it needs them. Small layers share a bucket. What must
// not queue after gradients (losses, statistics of the whole batch) has streams of its own.
#pragma once

#include <cstdint>
#include <string>

#include "core/schedule/strategies/strategy.h"

namespace tandem {

struct LayerwiseOptions {
  std::string reduce;  // serial, tree or ring; "": ring
  int64_t bucket = 0;  // bytes of gradients that at least travel together; 0: chosen
};
[[nodiscard]] const OptionTable<LayerwiseOptions>& layerwise_options();

[[nodiscard]] Strategy layerwise_strategy();

}  // namespace tandem
