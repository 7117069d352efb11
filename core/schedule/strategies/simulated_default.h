// What a strategy does by default where only its time tells what is best: each of its variants is
// simulated, and the fastest is taken. Variants differ in their bits, so the choice is a part of
// the plan's roles, which a run records and has again when it is resumed.
#pragma once

#include <memory>
#include <string>

#include "core/schedule/execution/update_rule.h"
#include "core/schedule/strategies/strategy.h"

namespace tandem {

class Registry;

struct SimulatedDefault {
  StrategyOptions options;  // with what was chosen
  std::string note;         // for the user: the choice and the times; "": there was none to make
};

// `inputs.options` as they are where nothing is left open, the strategy's default is its own, or
// there is no backend `sim`. A variant that cannot be is passed over; if none can, building the
// plan says why.
[[nodiscard]] SimulatedDefault simulated_default(const Registry& registry,
                                                 const std::string& strategy,
                                                 const StrategyInputs& inputs,
                                                 const std::shared_ptr<const Topology>& topology,
                                                 const UpdateRule& rule);

}  // namespace tandem
