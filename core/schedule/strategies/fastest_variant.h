// The variant of a strategy whose simulated step is the shortest: what a strategy does by default
// where only its time tells what is best. Variants differ in their bits, so the choice becomes a
// part of the plan's options, which a run records and has again when it is resumed.
#pragma once

#include <string>

#include "core/schedule/strategies/strategy.h"

namespace tandem {

// Seconds of the plan's step on simulated devices with the inputs' costs and links, other steps
// under way. What its tasks wait for need not be derived yet.
[[nodiscard]] double simulated_step_seconds(const StrategyInputs& inputs, const Plan& plan);

struct FastestVariant {
  StrategyOptions options;  // with what was chosen
  std::string note;         // for the user: the choice and the times; "": there was none to make
};

// `inputs.options` as they are where they leave nothing open or the strategy has a default of its
// own. A variant that cannot be built is passed over; if none can, building the plan says why.
[[nodiscard]] FastestVariant fastest_variant(const Strategy& strategy,
                                             const StrategyInputs& inputs);

}  // namespace tandem
