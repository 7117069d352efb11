// List scheduling of a plan's tasks by the costs: a stream that is free takes the task with the
// longest chain of work after it. Tasks that access the same memory, one of them writing, keep
// their order, so that results keep their bits.
#pragma once

#include <limits>

#include "core/schedule/cost/step_model.h"

namespace tandem {

struct OrderedStep {
  std::vector<int> order;  // of the tasks
  StepTimes times;
};

// The best order of so many attempts, and never worse than the plan's own. Stops once the step is
// within half a percent of `bound`, which no order can beat, or the first attempt is far from
// `wanted`, so that no other one will reach it.
[[nodiscard]] OrderedStep list_schedule(const StepModel& model, int attempts = 30, double bound = 0,
                                        double wanted = std::numeric_limits<double>::infinity());

// Puts the plan's tasks in this order. Its waits must then be derived again.
void reorder(Plan& plan, const std::vector<int>& order);

}  // namespace tandem
