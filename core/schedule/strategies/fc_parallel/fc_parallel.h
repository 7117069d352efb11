// The strategy `fc_parallel` (docs/design/strategies.md §3): the last fully connected layers are
// column-parallel, so that activations and their gradients travel and weight gradients do not.
// Everything else is data-parallel; each layer's gradient is summed as soon as it exists.
#pragma once

#include "core/schedule/strategies/common/option_table.h"
#include "core/schedule/strategies/common/strategy.h"
#include "core/schedule/strategies/composed/rounds.h"

namespace tandem {

[[nodiscard]] const OptionTable<FcParallelOptions>& fc_parallel_options();

// Requires at least two devices, at least as many neurons as devices in each divided layer, and
// float32.
[[nodiscard]] Strategy fc_parallel_strategy();

}  // namespace tandem
