// Gradients of a kernel's backward passes against finite differences of its forward pass.
#pragma once

#include "core/check/passes.h"

namespace tandem::checker {

Outcome check_input_gradients(const Subject& subject, const Case& one);
Outcome check_weight_gradients(const Subject& subject, const Case& one);

}  // namespace tandem::checker
