// The captured graphs of a plan, one for each micro-batch of the executor's round, and what
// surrounds them: the stream that launches, the streams that join a capture, the tasks that stay
// outside, and the events between the two. A graph is launched as a whole: it waits for the
// whole micro-batch before, and a task that waits for a captured task waits for the whole graph.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/device/machine.h"
#include "core/schedule/execution/capture.h"
#include "core/schedule/execution/task_events.h"
#include "core/schedule/kernels/runtime.h"

namespace tandem {

class PlanGraphs {
 public:
  // No graphs if `use` or the plan leaves no task to capture. Error if `use`
  // is `on` and nothing can be captured. `events` are those of all tasks outside of captures.
  PlanGraphs(const Runtime& runtime, const Plan& plan, const TaskEvents& events, GraphUse use,
             int64_t round);

  [[nodiscard]] bool possible() const { return possible_; }
  [[nodiscard]] const CaptureSplit& split() const { return split_; }
  [[nodiscard]] bool is_captured(int task) const { return is_captured_[size_t(task)]; }
  // Why there are no graphs although `use` allows them; "" otherwise.
  [[nodiscard]] const std::string& given_up() const { return given_up_; }

  // A micro-batch is captured once the same one of the round has run task by task, because
  // libraries load kernels at first use.
  [[nodiscard]] bool is_due(int64_t micro_batch) const {
    return possible_ && ran_[index(micro_batch)];
  }
  // It runs task by task.
  void note_live(int64_t micro_batch);
  [[nodiscard]] bool launched(int64_t micro_batch) const {
    return launched_[parity(micro_batch)] == micro_batch;
  }

  // Captures what `issue` submits for each captured task, unless there is a graph already. False if
  // a capture failed, after which there are no graphs any more; with GraphUse::on that is an Error.
  [[nodiscard]] bool capture(int64_t micro_batch, const std::function<void(int task)>& issue);
  // Launches the captured graph. `has_previous`: the micro-batch before is still in flight.
  void launch(int64_t micro_batch, bool has_previous);
  // The streams of captured tasks wait for the graph of the micro-batch, which tasks that are
  // issued one by one must follow.
  void leave(int64_t micro_batch) const;
  // Addresses have changed. No launch may be under way.
  void clear();

  // When all that was captured of a launched micro-batch is done.
  [[nodiscard]] const Event& end(int64_t micro_batch) const { return ends_[parity(micro_batch)]; }
  // The events of tasks inside a capture.
  [[nodiscard]] const TaskEvents& marks() const { return *marks_; }
  // The last of each stream's tasks outside of the graph.
  [[nodiscard]] const std::vector<int>& last_outside() const { return last_outside_; }

 private:
  [[nodiscard]] size_t index(int64_t micro_batch) const {
    return size_t(micro_batch) % graphs_.size();
  }
  [[nodiscard]] static size_t parity(int64_t micro_batch) { return size_t(micro_batch % 2); }
  [[nodiscard]] Graph captured(const std::function<void(int task)>& issue) const;
  void give_up(const std::string& reason);

  const Runtime& runtime_;
  const TaskEvents& events_;
  GraphUse use_;
  CaptureSplit split_;
  bool possible_;
  std::string given_up_;
  std::vector<bool> is_captured_;             // by task
  std::vector<std::optional<Graph>> graphs_;  // by micro-batch of the round
  std::vector<bool> ran_;                     // by micro-batch of the round
  std::vector<int64_t> launched_{-1, -1};     // by parity, as events are
  std::vector<Event> ends_;
  std::unique_ptr<TaskEvents> marks_;
  std::optional<Event> fork_;
  std::vector<Event> joins_;  // by stream of `joined_`
  StreamId launcher_;
  std::vector<StreamId> joined_;  // the other streams with captured tasks
  std::vector<StreamId> shared_;  // those of them that have tasks outside, too
  std::vector<int> last_before_, last_outside_;
};

}  // namespace tandem
