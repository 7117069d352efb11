// The order of a plan's tasks on their streams, chosen by the costs: whatever is free takes what
// makes the following steps late soonest. Tasks that touch the same memory, one of them writing,
// keep their order, so no sum changes and no bit.
#pragma once

#include "core/schedule/cost/step_model.h"

namespace tandem {

struct OrderedStep {
  std::vector<int> order;  // of the tasks
  StepTimes times;
};

// The best of so many attempts, and never worse than the plan's own order. It looks no further when
// the step is within half a percent of `bound`, which no order can pass.
[[nodiscard]] OrderedStep list_schedule(const StepModel& model, int attempts = 30,
                                        double bound = 0);

// The plan with its tasks in this order. Its waits are to be derived anew.
void reorder(Plan& plan, const std::vector<int>& order);

}  // namespace tandem
