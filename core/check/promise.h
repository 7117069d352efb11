// A promise that layers make to the host, and what came of an attempt to break it.
#pragma once

#include <map>
#include <string>
#include <utility>
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

inline Outcome kept() {
  return {};
}
inline Outcome broken(std::string detail) {
  return {Outcome::Verdict::broken, std::move(detail)};
}
inline Outcome not_applicable() {
  return {Outcome::Verdict::not_applicable, ""};
}
inline Outcome note(std::string detail) {
  return {Outcome::Verdict::note, std::move(detail)};
}
inline Outcome kept_unless(std::string detail) {
  return detail.empty() ? kept() : broken(std::move(detail));
}

}  // namespace tandem::checker
