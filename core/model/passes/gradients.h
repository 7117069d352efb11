// Passes of build_net() that decide where gradients flow, and insert a Split where several meet.
#pragma once

#include "core/model/net/draft.h"

namespace tandem {

// Which layers have backward passes and which tensors gradients: those between a loss and a trained
// weight. Error if there is nothing to train.
void find_gradients(Draft& draft);

// A tensor whose gradient several layers would write gets a Split.
void insert_splits(Draft& draft);

}  // namespace tandem
