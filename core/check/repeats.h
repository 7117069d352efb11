// The same result again: equal bits, and random numbers by position.
#pragma once

#include "core/check/passes.h"

namespace tandem::checker {

Outcome repeats_its_bits(const Subject& subject, const Case& one);
Outcome draws_by_position(const Subject& subject, const Case& one);

}  // namespace tandem::checker
