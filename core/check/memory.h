// What a kernel does to memory: what it writes, what it must not write, and what it may read.
#pragma once

#include "core/check/passes.h"

namespace tandem::checker {

Outcome stays_in_memory(const Subject& subject, const Case& one);
Outcome overwrites(const Subject& subject, const Case& one);
Outcome reads_only_what_its_traits_name(const Subject& subject, const Case& one);
Outcome accumulates(const Subject& subject, const Case& one);
Outcome skips_what_is_not_wanted(const Subject& subject, const Case& one);

}  // namespace tandem::checker
