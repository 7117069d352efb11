// Chooses the variant of a strategy whose simulated step is the shortest, for options that have no
// fixed default. Variants differ in the bits of their results, so the choice becomes a part of the
// plan's options, which a run records and uses again when it is resumed.
#pragma once

#include <string>

#include "core/schedule/strategies/common/strategy.h"

namespace tandem {

// Seconds of the plan's step on simulated devices with the inputs' costs and links, while the steps
// before and after it run. The plan's waits need not be derived yet; it is one before activations
// are recomputed, if the inputs ask for that.
[[nodiscard]] double simulated_step_seconds(const StrategyInputs& inputs, const Plan& plan);

struct FastestVariant {
  StrategyOptions options;  // with what was chosen
  std::string note;         // for the user: the choice and the times; "": nothing was chosen
};

// Returns `inputs.options` unchanged if they are complete or the strategy has a fixed default.
// Skips a variant that cannot be built; if none can be built, build_plan() throws the reason.
[[nodiscard]] FastestVariant fastest_variant(const Strategy& strategy,
                                             const StrategyInputs& inputs);

}  // namespace tandem
