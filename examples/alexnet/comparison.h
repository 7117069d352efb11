// Every strategy on the same work: its formula, what was measured, and its timeline as a picture.
#pragma once

#include <string>
#include <vector>

#include "options.h"

namespace alexnet {

struct StrategyResult {
  std::string strategy;
  std::string refusal;  // why it cannot be used here; then nothing below is set
  std::string formula;  // "a + b + max(c, m) + n"
  double by_formula = 0, step = 0, without_communication = 0;  // seconds
  double images_per_second = 0;
  std::string picture;       // file; "": none was requested
  std::string message_path;  // of Profile
};

// Measures them one after the other, with the options given; writes a timeline and, with --svg, a
// picture of each. Throws tandem::Error for what none of them can do.
[[nodiscard]] std::vector<StrategyResult> compare_strategies(const Options& options);

void print(const std::vector<StrategyResult>& results, const Options& options);

}  // namespace alexnet
