// Memory, files and threads of the process while a layer is used again and again.
#pragma once

#include "core/check/passes.h"

namespace tandem::checker {

Outcome holds_no_more_each_time(const Subject& subject, const Case& one);

}  // namespace tandem::checker
