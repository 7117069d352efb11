// The strategy `fc_parallel` (docs/design/strategies.md §3): the last fully connected layers are
// divided by neurons, so that activations travel and their gradients do not. Everything else is
// data-parallel, each layer's gradient summed as soon as it exists.
#pragma once

#include "core/schedule/strategies/strategy.h"

namespace tandem {

struct FcParallelOptions {
  int quota = 0;  // pieces of activation gradients that a round waits for; 0: chosen
  bool eager = false;
};
[[nodiscard]] const OptionTable<FcParallelOptions>& fc_parallel_options();

// It needs two devices or more, as many neurons as devices in each divided layer, and float32.
[[nodiscard]] Strategy fc_parallel_strategy();

}  // namespace tandem
