// Reduces buffers of which a plan touches only some bytes to these bytes: a device that computes
// the gradients of some layers needs no memory for those of all.
#pragma once

#include <vector>

#include "core/schedule/plan/plan.h"

namespace tandem {

// Removes from these buffers (of one slot each) what no task reads or writes, in multiples of 64
// bytes, and moves every region of them accordingly. Regions of bindings that no task uses become
// empty (buffer -1).
void pack_buffers(Plan& plan, const std::vector<int>& buffers);

}  // namespace tandem
