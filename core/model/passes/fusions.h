// Passes of build_net() that let the kernel of one layer do the work of its neighbours, so that a
// tensor is read and written once: a sum with another layer's output, and activations. Each layer
// stays in the net, with the same results.
#pragma once

#include "core/model/net/draft.h"

namespace tandem {

// Puts first the input of a sum whose producer can add the other one, so that the sum runs in place
// there. Before run_in_place().
void order_sums(Draft& draft, const std::string& device_kind);

// Fuses sums and activations that run in place into the upstream layer, where its kernel for the
// device kind can compute them. An activation keeps its backward pass, unless that kernel or the
// one of the layer after the activation can compute it, too.
void fuse_layers(Draft& draft, const std::string& device_kind);

}  // namespace tandem
