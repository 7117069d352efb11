// The plan of testing: forward only, data-parallel. The weights go to every device first, from
// whichever has trained them; the scalars are summed on device 0, and the class scores of the whole
// batch come together on the host.
#pragma once

#include "core/schedule/builder/strategy_inputs.h"

namespace tandem {

// Error for fewer rows than devices. `inputs.options` are not looked at.
[[nodiscard]] Plan build_testing_plan(const StrategyInputs& inputs);

}  // namespace tandem
