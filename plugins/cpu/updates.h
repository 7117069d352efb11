// The solver rules of tandem_update on float32 memory: one pass over weights, gradient and state.
// The bits are the same for any number of threads and any vector width. Throws Refusal for an
// unknown rule and for missing arguments of a rule.
#pragma once

#include <cstdint>

#include "plugins/abi.h"

namespace tandem::cpu {

void update(int32_t threads, const tandem_update& update);

}  // namespace tandem::cpu
