// The check of a finished plan: tasks that touch the same memory, one of them writing, with no
// order between them.
#pragma once

#include <string>
#include <vector>

#include "core/schedule/plan/memory_plan.h"
#include "core/schedule/plan/plan.h"

namespace tandem {

struct Race {
  int first = -1, second = -1;  // tasks
  int micro_batches_apart = 0;
  int buffer = -1;  // of the first
  // "'update conv1 @0' and 'forward conv1 @0' of the next micro-batch both use ..., unordered"
  std::string text;
};

// All such pairs of tasks over max(2, slots + 1) consecutive micro-batches. With `memory` given, by
// bytes of the arenas; otherwise by buffers.
[[nodiscard]] std::vector<Race> find_races(const Plan& plan, const MemoryPlan* memory = nullptr);

}  // namespace tandem
