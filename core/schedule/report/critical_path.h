// What the time of a plan's steps is made of: from the end of the last task back to what it waited
// for, and so on. More of what is on that way makes the step longer; of anything else not.
#pragma once

#include <vector>

#include "core/schedule/plan/plan.h"
#include "core/schedule/plan/trace.h"

namespace tandem {

struct PathPart {
  Stage stage;
  double seconds = 0;
  double share = 0;  // of the whole way
};

// The events of some consecutive steps. Parts with the longest first; empty without events.
[[nodiscard]] std::vector<PathPart> critical_path(const Plan& plan,
                                                  const std::vector<TraceEvent>& events);

}  // namespace tandem
