// The graphs of a plan's steps, one for each step of the executor's round, and what surrounds them:
// who launches, who joins a capture, which tasks stay outside, and the events between the two.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/device/machine.h"
#include "core/schedule/execution/capture.h"
#include "core/schedule/execution/task_events.h"

namespace tandem {

class StepGraphs {
 public:
  // None, if `split` says that nothing can be captured.
  StepGraphs(const Machine& machine, const Plan& plan, CaptureSplit split, int64_t round);

  [[nodiscard]] bool possible() const { return possible_; }
  [[nodiscard]] const CaptureSplit& split() const { return split_; }
  [[nodiscard]] bool is_captured(int task) const { return is_captured_[size_t(task)]; }

  // A step is captured once its like has run task by task: libraries load kernels at first use.
  [[nodiscard]] bool is_due(int64_t step) const { return possible_ && ran_[index(step)]; }
  // What ran how. A step number may come again.
  void note_live(int64_t step);
  void note_launched(int64_t step);
  [[nodiscard]] bool launched(int64_t step) const { return launched_[parity(step)] == step; }

  [[nodiscard]] const std::optional<Graph>& of(int64_t step) const { return graphs_[index(step)]; }
  void keep(int64_t step, Graph graph) { graphs_[index(step)].emplace(std::move(graph)); }
  // Addresses have changed. No launch may be under way.
  void clear();
  // Never again, and why.
  void give_up(const std::string& reason);
  [[nodiscard]] const std::string& given_up() const { return given_up_; }

  // When all that was captured of a launched step is done.
  [[nodiscard]] const Event& end(int64_t step) const { return ends_[parity(step)]; }
  // Inside a capture: of its tasks, of its begin, and of each joined stream's end.
  [[nodiscard]] const TaskEvents& marks() const { return *marks_; }
  [[nodiscard]] const Event& fork() const { return *fork_; }
  [[nodiscard]] const Event& join(size_t stream) const { return joins_[stream]; }

  [[nodiscard]] StreamId launcher() const { return launcher_; }
  // The other streams with captured tasks; those of them that have tasks outside, too.
  [[nodiscard]] const std::vector<StreamId>& joined() const { return joined_; }
  [[nodiscard]] const std::vector<StreamId>& shared() const { return shared_; }
  // The last task of each stream before the graph; and of all outside.
  [[nodiscard]] const std::vector<int>& last_before() const { return last_before_; }
  [[nodiscard]] const std::vector<int>& last_outside() const { return last_outside_; }

 private:
  [[nodiscard]] size_t index(int64_t step) const {
    return static_cast<size_t>(step) % graphs_.size();
  }
  [[nodiscard]] static size_t parity(int64_t step) { return static_cast<size_t>(step % 2); }

  CaptureSplit split_;
  bool possible_;
  std::string given_up_;
  std::vector<bool> is_captured_;             // by task
  std::vector<std::optional<Graph>> graphs_;  // by step of the round
  std::vector<bool> ran_;                     // by step of the round
  std::vector<int64_t> launched_{-1, -1};     // by parity, as events are
  std::vector<Event> ends_;
  std::unique_ptr<TaskEvents> marks_;
  std::optional<Event> fork_;
  std::vector<Event> joins_;
  StreamId launcher_;
  std::vector<StreamId> joined_, shared_;
  std::vector<int> last_before_, last_outside_;
};

}  // namespace tandem
