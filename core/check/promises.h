// The promises that a layer type and its kernel make to the host by plugins/abi.h, each with a
// function that tries to break it. Some of the lines only inform.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/check/subject.h"

namespace tandem::checker {

struct Outcome {
  // A note is no verdict: a figure, or the reason why something is not checked.
  enum class Verdict { kept, broken, not_applicable, note };
  Verdict verdict = Verdict::kept;
  std::string detail;                       // how it is broken; what the note says
  std::map<std::string, double> figures{};  // of a note, by name
};

struct Promise {
  const char* name;  // "accumulate"
  const char* text;  // one line
  // Throws Error if a pass fails.
  Outcome (*check)(const Subject&, const Case&);
};

[[nodiscard]] const std::vector<Promise>& promises();

}  // namespace tandem::checker
