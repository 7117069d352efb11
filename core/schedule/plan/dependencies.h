// The waits of a plan, derived from what its tasks declare to read and write. No strategy writes
// one by hand.
#pragma once

#include "core/schedule/plan/plan.h"

namespace tandem {

// Fills in every task's `after`. Two tasks that touch the same bytes, one of them writing, get the
// order in which they are listed, also across micro-batches, as the slots of the buffer require.
// Waits that other waits and the order of the streams imply are left out, so each one is needed.
void derive_dependencies(Plan& plan);

}  // namespace tandem
