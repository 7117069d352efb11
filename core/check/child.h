// The child process of a check: it runs what may crash or hang.
#pragma once

#include "core/check/options.h"

namespace tandem::checker {

// Where the child begins, or goes on after another one has died.
struct Position {
  size_t unit = 0, promise = 0;
  bool repeats = true;  // the unit has not broken the promise `repeats`
};

// Writes lines of channel.h to `file`, and ends the process.
[[noreturn]] void run_child(const CheckOptions& options, int file, Position first);

}  // namespace tandem::checker
