// What a kernel computes for the layers around it: a sum with another layer's output, and ReLUs
// after and before the layer. The results must be those of layers of their own.
#pragma once

#include "core/check/passes.h"

namespace tandem::checker {

Outcome equal_with_fusions(const Subject& subject, const Case& one);

}  // namespace tandem::checker
