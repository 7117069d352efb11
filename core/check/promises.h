// The promises that a layer type and its kernel make to the host by plugins/abi.h, each with a
// function that tries to break it.
#pragma once

#include <string>
#include <vector>

#include "core/check/subject.h"

namespace tandem::checker {

struct Outcome {
  enum class Verdict { kept, broken, not_applicable };
  Verdict verdict = Verdict::kept;
  std::string detail;  // how it is broken
};

struct Promise {
  const char* name;  // "accumulate"
  const char* text;  // one line
  // Throws Error if a pass fails.
  Outcome (*check)(const Subject&, const Case&);
};

[[nodiscard]] const std::vector<Promise>& promises();

}  // namespace tandem::checker
