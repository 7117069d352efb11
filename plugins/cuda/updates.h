// The solver rules of tandem_update on device memory, one pass over weights, gradient and state.
// Rate, step and norms are read on the device. Throws Refusal for an unknown rule and for missing
// arguments of a rule.
#pragma once

#include "plugins/abi.h"

namespace tandem::cuda {

void update(const tandem_call& call, const tandem_update& update);

}  // namespace tandem::cuda
