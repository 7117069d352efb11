// The solver rules of tandem_update on device memory, one pass over weights, gradient and state.
// Rate, step and norms are read on the device. Refusal for a rule that is not known and for what a
// rule lacks.
#pragma once

#include "plugins/abi.h"

namespace tandem::cuda {

void update(const tandem_call& call, const tandem_update& update);

}  // namespace tandem::cuda
