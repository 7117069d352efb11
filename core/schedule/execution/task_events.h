// The events of a plan's tasks. At most two steps are in flight, so every task has two of each
// kind, used in turns by the parity of the step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/device/machine.h"
#include "core/schedule/execution/capture.h"
#include "core/schedule/plan/plan.h"

namespace tandem {

class TaskEvents {
 public:
  TaskEvents(const Machine& machine, const Plan& plan);

  [[nodiscard]] const Event& start(int task, int64_t step) const;
  [[nodiscard]] const Event& done(int task, int64_t step) const;
  // When the task's stream number `stream` (1, 2, ...) has arrived at it.
  [[nodiscard]] const Event& arrived(int task, size_t stream, int64_t step) const;

  // Tasks whose being done means that every task is: the last of each stream that does work.
  [[nodiscard]] const std::vector<int>& last() const { return last_; }

 private:
  struct OfTask {
    std::vector<Event> start, done;           // by parity
    std::vector<std::vector<Event>> arrived;  // by parity, then by further stream
  };
  [[nodiscard]] const OfTask& of(int task) const { return tasks_[static_cast<size_t>(task)]; }

  std::vector<OfTask> tasks_;
  std::vector<int> last_;
};

// What a watchdog says about a step that has not finished in `seconds`: the first task that is not
// done, whether it is running or what it waits for, and who waits for it. `started` says that start
// events are recorded.
[[nodiscard]] std::string explain_stuck(const Plan& plan, const TaskEvents& events, int64_t step,
                                        double seconds, bool started);
// The same of a step that ran as one captured graph, `end` being reached behind it.
[[nodiscard]] std::string explain_stuck_graph(const Plan& plan, const CaptureSplit& split,
                                              const TaskEvents& events, const Event& end,
                                              int64_t step, double seconds);

}  // namespace tandem
