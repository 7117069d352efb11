// Buffers of which a plan touches only some bytes keep only these: a device that has some layers'
// gradients needs no room for all.
#pragma once

#include <vector>

#include "core/schedule/plan/plan.h"

namespace tandem {

// Takes out of these buffers (of one slot each) what no task reads or writes, to multiples of 64
// bytes, and moves every region of them along. Regions of bindings that no task uses become none.
void pack_buffers(Plan& plan, const std::vector<int>& buffers);

}  // namespace tandem
