// How long the passes of a layer take for each element, beside a copy. A note, never a verdict.
#pragma once

#include "core/check/passes.h"

namespace tandem::checker {

// Of the largest case, with its rows repeated so often that a call is short beside its work.
Outcome measures_time(const Subject& subject, const Case& one);

}  // namespace tandem::checker
