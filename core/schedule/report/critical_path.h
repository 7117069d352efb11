// What determines the time of a plan: the path from the end of the last task back to what it waited
// for, and so on. A task on that path that takes longer makes the whole longer; no other task does.
#pragma once

#include <vector>

#include "core/schedule/plan/dependency_lists.h"
#include "core/schedule/plan/plan.h"
#include "core/schedule/plan/trace.h"

namespace tandem {

struct PathPart {
  Stage stage;
  double seconds = 0;
  double share = 0;  // of the whole path
};

// From the events of some consecutive micro-batches. The longest part comes first; empty without
// events.
[[nodiscard]] std::vector<PathPart> critical_path(const Plan& plan,
                                                  const std::vector<TraceEvent>& events);
// The same for a plan whose waits are not derived, with what each task comes after instead, the
// nearest first. What others of these imply changes nothing: it ended before the nearer task that
// implies it began.
[[nodiscard]] std::vector<PathPart> critical_path(const Plan& plan,
                                                  const std::vector<TraceEvent>& events,
                                                  const DependencyLists& before);

}  // namespace tandem
