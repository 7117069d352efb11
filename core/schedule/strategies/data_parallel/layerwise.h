// The strategy `layerwise` (docs/design/strategies.md §2): every layer's gradient is sent as soon
// as it exists, during the backward pass of the layers before it. The new weights are broadcast
// during the next step's forward pass, in the order in which it needs them. Small layers share a
// bucket. Losses and statistics of the whole batch have streams of their own, so that they do not
// queue after gradients.
#pragma once

#include <cstdint>
#include <string>

#include "core/schedule/strategies/common/strategy.h"

namespace tandem {

struct LayerwiseOptions {
  std::string reduce;  // serial, tree or ring; "": ring
  int64_t bucket = 0;  // the least bytes of a bucket of gradients; 0: chosen
};
[[nodiscard]] const OptionTable<LayerwiseOptions>& layerwise_options();

[[nodiscard]] Strategy layerwise_strategy();

}  // namespace tandem
