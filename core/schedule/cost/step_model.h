// A plan's steps in virtual time, without a machine: the seconds of each task, the tasks that must
// precede it because both access the same memory, and the times that an order of the tasks gives.
// With the plan's own order these are the times of a simulated machine (plugins/simulation.h).
#pragma once

#include <cstdint>
#include <vector>

#include "core/device/machine.h"
#include "core/model/net.h"
#include "core/schedule/cost/cost_table.h"
#include "core/schedule/plan/plan.h"
#include "plugins/simulation.h"

namespace tandem {

struct TaskTime {
  double start = 0, end = 0;
};

struct StepTimes {
  double step_seconds = 0;      // from the end of a step to the end of the next
  std::vector<TaskTime> tasks;  // of a step among others; seconds after its first task begins
};

class StepModel {
 public:
  struct TimedTask {
    std::vector<int> streams;      // device * stream_kinds + kind
    double seconds = 0;            // alone, with all its copies
    int source = -1, target = -1;  // of copies: devices, TANDEM_HOST for the host
    std::vector<int64_t> copies;   // bytes, one after the other
    // Tasks that access the same memory, one of the two writing, on any stream; those that others
    // of them imply are left out.
    std::vector<Dependency> before;
    [[nodiscard]] bool takes_links() const {
      return !copies.empty() && timing::uses_links(source, target);
    }
  };

  // The plan's waits need not be derived yet. `link`, `topology`: as in StrategyInputs.
  StepModel(const Net& net, const Plan& plan, const CostTable& costs, const LinkSpec& link,
            const Topology* topology);

  [[nodiscard]] const std::vector<TimedTask>& tasks() const { return tasks_; }
  [[nodiscard]] int streams() const { return streams_; }
  [[nodiscard]] StreamKind kind_of(int stream) const { return StreamKind(stream % stream_kinds); }
  // From here on copies between devices take no time.
  void remove_transfers();
  // Without any reservation.
  [[nodiscard]] const timing::Links& links() const { return links_; }

  // By task, the tasks that wait for it: the inverse of TimedTask::before.
  [[nodiscard]] std::vector<std::vector<Dependency>> followers() const;

  // The order of the tasks as they stand.
  [[nodiscard]] std::vector<int> given_order() const;
  // Every stream takes its tasks in this order, in which each task comes after those of its step
  // that it waits for. The fewer steps are simulated the more tasks there are.
  [[nodiscard]] StepTimes in_order(const std::vector<int>& order) const;

 private:
  void estimate_tasks(const Net& net, const Plan& plan, const CostTable& costs,
                      const Topology* topology);
  void find_conflicts(const Plan& plan);

  std::vector<TimedTask> tasks_;
  int streams_ = 0;
  timing::Links links_;
};

}  // namespace tandem
