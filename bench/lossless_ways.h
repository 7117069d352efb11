// Every legal way of each strategy on so many devices, for check_lossless: reductions, buckets,
// pairs, groups, slices, quotas, with and without --eager and extended memory.
#pragma once

#include <string>
#include <vector>

#include "core/schedule/strategies/strategy.h"

namespace tandem::bench {

struct Way {
  std::string strategy, label;  // the label as a user would write it
  StrategyOptions options;
  [[nodiscard]] std::string name() const {
    return label.empty() ? strategy : strategy + " " + label;
  }
};

// At least one: what fits no device count is tried as it is, so that its refusal is shown.
[[nodiscard]] std::vector<Way> ways_of(const std::string& strategy, int devices);

}  // namespace tandem::bench
