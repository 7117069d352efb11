// The plan of testing: forward only, data-parallel. The weights go to every device first, from
// the devices that trained them, if there are such. The scalars are summed on device 0, and the
// class scores of the whole batch are copied to the host.
#pragma once

#include "core/schedule/builder/strategy_inputs.h"

namespace tandem {

// Error for fewer rows than devices. `inputs.options` are ignored. `sends_weights`: false if every
// device has them already.
[[nodiscard]] Plan build_testing_plan(const StrategyInputs& inputs, bool sends_weights = true);

}  // namespace tandem
