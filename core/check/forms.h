// The same values whatever the form of the binding: flags, memory in place, layouts, dtypes,
// slices.
#pragma once

#include "core/check/passes.h"

namespace tandem::checker {

Outcome needs_no_flag(const Subject& subject, const Case& one);
Outcome runs_in_place(const Subject& subject, const Case& one);
Outcome equal_in_every_layout(const Subject& subject, const Case& one);
Outcome equal_in_every_dtype(const Subject& subject, const Case& one);
Outcome slices_are_parts(const Subject& subject, const Case& one);

}  // namespace tandem::checker
