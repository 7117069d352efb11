// The plans of the strategy `asymmetric`, one for each way to divide devices and weights.
#pragma once

#include "core/schedule/builder/strategy_inputs.h"
#include "core/schedule/strategies/asymmetric/asymmetric_rows.h"
#include "core/schedule/strategies/common/weight_division.h"

namespace tandem {

// The tasks are in the order in which they are emitted, which is valid but not optimized.
// Plan::options has the groups and the division. `to_all`: as in AsymmetricOptions.
[[nodiscard]] Plan asymmetric_plan(const StrategyInputs& inputs, const AsymmetricGroups& groups,
                                   Division division, bool to_all);

}  // namespace tandem
