// The strategy `sequential` (docs/design/strategies.md §0), the baseline: the whole model is
// broadcast in one copy per device, all gradients of a device are sent in one copy, and nothing
// overlaps. Its options are PartsOptions: the parts only name the stages here, so that its table
// can be compared with that of two_phase.
#pragma once

#include "core/schedule/strategies/common/strategy.h"

namespace tandem {

[[nodiscard]] Strategy sequential_strategy();

}  // namespace tandem
