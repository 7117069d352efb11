// A plan's steps in virtual time, without a machine: the seconds of each task, the tasks that must
// precede it because both access the same memory, and the times that an order of the tasks gives.
// With the plan's own order these are the times of a simulated machine (plugins/simulation.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/device/machine.h"
#include "core/model/net/net.h"
#include "core/schedule/cost/cost_table.h"
#include "core/schedule/plan/dependency_lists.h"
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
    std::span<const int> streams;     // device * stream_kinds + kind
    double seconds = 0;               // alone, with all its copies
    int source = -1, target = -1;     // of copies: devices, TANDEM_HOST for the host
    std::span<const int64_t> copies;  // bytes, one after the other
    [[nodiscard]] bool takes_links() const {
      return !copies.empty() && timing::uses_links(source, target);
    }
  };

  // The plan's waits need not be derived yet. `link`, `topology`: as in StrategyInputs.
  StepModel(const Net& net, const Plan& plan, const CostTable& costs, const LinkSpec& link,
            const Topology* topology);
  StepModel(StepModel&&) = default;  // not copied: tasks have parts of the lists

  [[nodiscard]] const std::vector<TimedTask>& tasks() const { return tasks_; }
  // By task, those that access the same memory, one of the two writing, on any stream; those that
  // others of them imply are left out. The nearest come first.
  [[nodiscard]] const DependencyLists& before() const { return before_; }
  [[nodiscard]] int streams() const { return streams_; }
  [[nodiscard]] StreamKind kind_of(int stream) const { return StreamKind(stream % stream_kinds); }
  // Without any reservation.
  [[nodiscard]] const timing::Links& links() const { return links_; }

  // By task, the tasks that wait for it: the inverse of before().
  [[nodiscard]] DependencyLists followers() const;

  // The order of the tasks as they stand.
  [[nodiscard]] std::vector<int> given_order() const;
  // Every stream takes its tasks in this order, in which each task comes after those of its step
  // that it waits for. The fewer steps are simulated the more tasks there are. Without transfers
  // copies between devices take no time.
  [[nodiscard]] StepTimes in_order(const std::vector<int>& order, bool has_transfers = true) const;

 private:
  void estimate_tasks(const Net& net, const Plan& plan, const CostTable& costs,
                      const Topology* topology);
  void reserve_lists(const Plan& plan);
  void find_conflicts(const Plan& plan);

  std::vector<TimedTask> tasks_;
  std::vector<int> task_streams_;     // of all tasks, one after the other
  std::vector<int64_t> task_copies_;  // likewise
  DependencyLists before_;
  DependencyLists waits_;     // of these, what has no stream in common with the task
  size_t farthest_back_ = 0;  // micro-batches, of before_
  int streams_ = 0;
  timing::Links links_;
};

}  // namespace tandem
