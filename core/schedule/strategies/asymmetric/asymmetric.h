// The plans of the strategy `asymmetric`, one for each way to divide devices and weights; which of
// them the strategy takes is chosen in asymmetric_choice.cpp.
#pragma once

#include "core/schedule/strategies/asymmetric/asymmetric_groups.h"
#include "core/schedule/strategies/common/weight_shares.h"

namespace tandem {

// In the order in which it is emitted, which is a valid one and no more.
[[nodiscard]] Plan asymmetric_plan(const StrategyInputs& inputs, const AsymmetricGroups& groups,
                                   Division division);

}  // namespace tandem
