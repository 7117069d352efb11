// A NaN that goes in comes out.
#pragma once

#include "core/check/passes.h"

namespace tandem::checker {

Outcome passes_nan_on(const Subject& subject, const Case& one);

}  // namespace tandem::checker
