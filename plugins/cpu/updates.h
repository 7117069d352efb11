// The solver rules of tandem_update on float32 memory: one pass over weights, gradient and state.
// Bit-identical for any number of threads and any vector width. Refusal for a rule that is not
// known and for what a rule lacks.
#pragma once

#include <cstdint>

#include "plugins/abi.h"

namespace tandem::cpu {

void update(int32_t threads, const tandem_update& update);

}  // namespace tandem::cpu
