// What a layer type declares: shapes, traits, weights and cost, beside what its kernel has.
#pragma once

#include "core/check/passes.h"

namespace tandem::checker {

Outcome declares(const Subject& subject, const Case& one);

}  // namespace tandem::checker
