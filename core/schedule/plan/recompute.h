// Activation recomputation: the output of a layer that does little work for each byte is freed
// after the forward pass has used it for the last time, and computed again directly before the
// backward pass reads it. Weights, moving averages and losses keep their bits, since the same
// kernel runs again over the same values; a step takes less memory and some more time.
#pragma once

#include "core/schedule/plan/plan.h"

namespace tandem {

struct Net;

// Adds tasks "recompute norm1 @0" to a training plan whose waits are not derived yet. Outputs that
// could not be computed again exactly, or whose layer's inputs would have to be kept for it, stay
// as they are, and all do if that would save less than `min_share` of the transient memory: what
// kernels keep besides is not known yet, and a step takes longer. Plan::recomputation says what was
// done.
void recompute_activations(Plan& plan, const Net& net, double min_share = 0.01);

}  // namespace tandem
