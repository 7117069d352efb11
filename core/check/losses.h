// Losses and metrics: which rows count, and by what they are multiplied.
#pragma once

#include "core/check/passes.h"

namespace tandem::checker {

Outcome counts_samples(const Subject& subject, const Case& one);
Outcome scales_with_the_loss_weight(const Subject& subject, const Case& one);

}  // namespace tandem::checker
