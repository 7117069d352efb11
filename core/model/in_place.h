// Passes of build_net() that save memory and memory traffic: tensors that share memory, and
// activations that a kernel applies as it writes its output.
#pragma once

#include "core/model/draft.h"

namespace tandem {

// Outputs of inserted Splits become views of their input, where nothing is reordered.
void view_splits(Draft& draft);

// Layers that may write over their input do so.
void run_in_place(Draft& draft);

// Gradients of the inputs of a sum become views of the gradient of its output.
void view_gradients_of_sums(Draft& draft);

// Fuses activations that run in place into the upstream layer, where its kernel for the device kind
// can apply them. The activation layer keeps its backward pass, unless that kernel or the one of
// the layer after the activation can compute it, too.
void fuse_activations(Draft& draft, const std::string& device_kind);

}  // namespace tandem
