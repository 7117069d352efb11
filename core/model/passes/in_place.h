// Passes of build_net() that save memory and memory traffic: tensors and gradients that share
// memory.
#pragma once

#include "core/model/net/draft.h"

namespace tandem {

// Whether the layer adds its inputs, so that their gradients are that of its output.
[[nodiscard]] bool is_plain_sum(const Layer& layer);

// Outputs of inserted Splits become views of their input, where nothing is reordered.
void view_splits(Draft& draft);

// Layers that may write over their input do so.
void run_in_place(Draft& draft);

// Gradients of the inputs of a sum become views of the gradient of its output.
void view_gradients_of_sums(Draft& draft);

}  // namespace tandem
