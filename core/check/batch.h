// Rows of a batch: each on its own, in parts on several devices, and their merged statistics.
#pragma once

#include "core/check/passes.h"

namespace tandem::checker {

Outcome rows_are_independent(const Subject& subject, const Case& one);
Outcome parts_of_the_batch(const Subject& subject, const Case& one);
Outcome statistics_of_parts(const Subject& subject, const Case& one);

}  // namespace tandem::checker
