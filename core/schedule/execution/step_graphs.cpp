#include "core/schedule/execution/step_graphs.h"

#include <algorithm>
#include <utility>

namespace tandem {

namespace {

bool contains(const std::vector<StreamId>& streams, StreamId stream) {
  return std::find(streams.begin(), streams.end(), stream) != streams.end();
}

// Each once, in the order of the tasks.
std::vector<StreamId> streams_of(const Plan& plan, const std::vector<int>& tasks) {
  std::vector<StreamId> result;
  for (const int task : tasks) {
    for (const StreamId stream : plan.tasks[static_cast<size_t>(task)].streams) {
      if (!contains(result, stream)) result.push_back(stream);
    }
  }
  return result;
}

// Of each stream that does work.
std::vector<int> last_of_streams(const Plan& plan, const std::vector<int>& tasks) {
  std::vector<StreamId> seen;
  std::vector<int> result;
  for (auto task = tasks.rbegin(); task != tasks.rend(); ++task) {
    const StreamId stream = plan.tasks[static_cast<size_t>(*task)].streams[0];
    if (contains(seen, stream)) continue;
    seen.push_back(stream);
    result.push_back(*task);
  }
  return result;
}

}  // namespace

StepGraphs::StepGraphs(const Machine& machine, const Plan& plan, CaptureSplit split, int64_t round)
    : split_(std::move(split)),
      possible_(split_.reason.empty()),
      is_captured_(plan.tasks.size()),
      graphs_(static_cast<size_t>(round)),
      ran_(static_cast<size_t>(round)) {
  if (!possible_) return;
  for (const int task : split_.captured) is_captured_[static_cast<size_t>(task)] = true;
  std::vector<int> outside = split_.before;
  outside.insert(outside.end(), split_.after.begin(), split_.after.end());
  last_before_ = last_of_streams(plan, split_.before);
  last_outside_ = last_of_streams(plan, outside);
  launcher_ = plan.tasks[static_cast<size_t>(split_.captured.front())].streams[0];
  const std::vector<StreamId> live = streams_of(plan, outside);
  for (const StreamId stream : streams_of(plan, split_.captured)) {
    if (stream == launcher_) continue;
    joined_.push_back(stream);
    joins_.emplace_back(machine);
    if (contains(live, stream)) shared_.push_back(stream);
  }
  ends_.emplace_back(machine);
  ends_.emplace_back(machine);
  fork_.emplace(machine);
  marks_ = std::make_unique<TaskEvents>(machine, plan);
}

void StepGraphs::note_live(int64_t step) {
  ran_[index(step)] = true;
  launched_[parity(step)] = -1;
}

void StepGraphs::note_launched(int64_t step) {
  launched_[parity(step)] = step;
}

void StepGraphs::clear() {
  for (std::optional<Graph>& graph : graphs_) graph.reset();
}

void StepGraphs::give_up(const std::string& reason) {
  possible_ = false;
  given_up_ = reason;
}

}  // namespace tandem
