// The executor's watchdog: how long it waits for events, and what it reports about a micro-batch
// that does not finish.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "core/schedule/execution/capture.h"
#include "core/schedule/execution/task_events.h"
#include "core/schedule/plan/plan.h"

namespace tandem {

// How long to wait for events in all. Only time in which this process could run counts: after a
// suspension (Ctrl-Z, a debugger) it goes on waiting where it was.
class Timeout {
 public:
  // While it waits, `check` is called now and then; an Error of it ends the wait.
  explicit Timeout(double seconds, std::function<void()> check = {})
      : left_(seconds), check_(std::move(check)) {}

  // False when the time is used up, or if the device reports that the event will never come.
  [[nodiscard]] bool wait(const Event& event);

 private:
  double left_;
  std::function<void()> check_;
};

// About a micro-batch that has not finished in `seconds`: the first task that is not done, whether
// it is running or what it waits for, and what waits for it. `started`: start events are recorded.
[[nodiscard]] std::string explain_stuck(const Plan& plan, const TaskEvents& events,
                                        int64_t micro_batch, double seconds, bool started);
// The same of a micro-batch that ran as one captured graph; `end` is reached after the graph.
[[nodiscard]] std::string explain_stuck_graph(const Plan& plan, const CaptureSplit& split,
                                              const TaskEvents& events, const Event& end,
                                              int64_t micro_batch, double seconds);

}  // namespace tandem
