// The waits of a plan, derived from what its tasks declare to read and write. No strategy writes
// one by hand.
#pragma once

#include "core/schedule/plan/plan.h"

namespace tandem {

// Fills in every task's `after`, in the order of the tasks: whatever touches the same bytes, one of
// them writing, gets an order, over as many micro-batches as slots make possible. Then takes out
// every wait that others and the order of the streams imply, so that each remaining one is needed.
void derive_dependencies(Plan& plan);

}  // namespace tandem
