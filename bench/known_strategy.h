// What programs that take one strategy by its name ask of it: that there is one of that name.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/strings.h"
#include "core/schedule/strategies/strategy.h"

namespace tandem::bench {

// "" is all of them.
inline void require_strategy(const std::string& name) {
  std::vector<std::string> names;
  for (const Strategy& strategy : strategies()) {
    if (name.empty() || strategy.name == name) return;
    names.push_back(strategy.name);
  }
  throw error("--strategy {}: unknown strategy{}; there are: {}", name, did_you_mean(name, names),
              fmt::join(names, ", "));
}

}  // namespace tandem::bench
