// The events of a plan's tasks. At most two micro-batches are in flight, so every task has two of
// each kind, used in turns by the parity of the micro-batch.
#pragma once

#include <cstdint>
#include <vector>

#include "core/device/machine.h"
#include "core/schedule/plan/plan.h"

namespace tandem {

class TaskEvents {
 public:
  TaskEvents(const Machine& machine, const Plan& plan);

  [[nodiscard]] const Event& start(int task, int64_t micro_batch) const;
  [[nodiscard]] const Event& done(int task, int64_t micro_batch) const;
  // When the task's stream number `stream` (1, 2, ...) has arrived at it.
  [[nodiscard]] const Event& arrived(int task, size_t stream, int64_t micro_batch) const;

  // The last task of each stream that does work: once these are done, every task is.
  [[nodiscard]] const std::vector<int>& last() const { return last_; }

 private:
  struct OfTask {
    std::vector<Event> start, done;           // by parity
    std::vector<std::vector<Event>> arrived;  // by parity, then by further stream
  };
  [[nodiscard]] const OfTask& of(int task) const { return tasks_[size_t(task)]; }

  std::vector<OfTask> tasks_;
  std::vector<int> last_;
};

}  // namespace tandem
