// The first pass of build_net(): from a definition to the layers of one phase.
#pragma once

#include "core/model/net/draft.h"

namespace tandem {

// The layers of the phase with their attributes, tensors in single-assignment form, shapes, loss
// weights and declared weights. Error with the layer, its type and file:line.
[[nodiscard]] Draft resolve(const NetDefinition& definition, const Registry& registry,
                            const NetOptions& options, int32_t phase);

}  // namespace tandem
