// What no order of a plan's tasks can pass because some wait for others: a device that computes all
// that lies between an update and the same of the next step cannot begin before the new weights
// have reached it, nor end later than what still has to follow.
#pragma once

#include <string>

#include "core/schedule/cost/step_model.h"

namespace tandem {

struct ChainBound {
  double seconds = 0;   // of a step; 0: the plan updates nothing
  int device = 0;       // which computes meanwhile
  double computes = 0;  // of that, what the device computes
  std::string task;     // from whose end to its next
};

// By memory alone: streams and their order are left out, and copies meet no others. The largest of
// one update of each layer and every device.
[[nodiscard]] ChainBound chain_bound(const StepModel& model, const Plan& plan);

}  // namespace tandem
