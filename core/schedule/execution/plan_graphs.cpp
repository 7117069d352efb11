#include "core/schedule/execution/plan_graphs.h"

#include <algorithm>
#include <utility>

namespace tandem {
namespace {

CaptureSplit wanted_split(const Plan& plan, const Machine& machine, GraphUse use) {
  CaptureSplit none;
  none.reason = "not wanted";
  if (use == GraphUse::off || (use == GraphUse::automatic && plan.devices > 1)) return none;
  if (machine.captures_graphs()) {
    CaptureSplit split = split_for_capture(plan);
    if (!split.reason.empty()) {
      split.reason =
          fmt::format("the plan of '{}' cannot be captured: {}", plan.strategy, split.reason);
    }
    none = split;
  } else {
    none.reason = fmt::format("backend '{}' captures no graphs", machine.kind());
  }
  if (use == GraphUse::on && !none.reason.empty()) {
    throw error("--graphs on: {}; leave the option out, or say --graphs off", none.reason);
  }
  return none;
}

bool contains(const std::vector<StreamId>& streams, StreamId stream) {
  return std::find(streams.begin(), streams.end(), stream) != streams.end();
}

// Each once, in the order of the tasks.
std::vector<StreamId> streams_of(const Plan& plan, const std::vector<int>& tasks) {
  std::vector<StreamId> result;
  for (const int task : tasks) {
    for (const StreamId stream : plan.task(task).streams) {
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
    const StreamId stream = plan.task(*task).streams[0];
    if (contains(seen, stream)) continue;
    seen.push_back(stream);
    result.push_back(*task);
  }
  return result;
}

}  // namespace

PlanGraphs::PlanGraphs(const Runtime& runtime, const Plan& plan, const TaskEvents& events,
                       GraphUse use, int64_t round)
    : runtime_(runtime),
      events_(events),
      use_(use),
      split_(wanted_split(plan, runtime.machine(), use)),
      possible_(split_.reason.empty()),
      is_captured_(plan.tasks.size()),
      graphs_(size_t(round)),
      ran_(size_t(round)) {
  if (!possible_) return;
  const Machine& machine = runtime.machine();
  for (const int task : split_.captured) is_captured_[size_t(task)] = true;
  std::vector<int> outside = split_.before;
  outside.insert(outside.end(), split_.after.begin(), split_.after.end());
  last_before_ = last_of_streams(plan, split_.before);
  last_outside_ = last_of_streams(plan, outside);
  launcher_ = plan.task(split_.captured.front()).streams[0];
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

void PlanGraphs::note_live(int64_t micro_batch) {
  ran_[index(micro_batch)] = true;
  launched_[parity(micro_batch)] = -1;
}

void PlanGraphs::leave(int64_t micro_batch) const {
  for (const StreamId stream : joined_) runtime_.stream(stream).wait(end(micro_batch));
}

void PlanGraphs::clear() {
  for (std::optional<Graph>& graph : graphs_) graph.reset();
}

void PlanGraphs::give_up(const std::string& reason) {
  possible_ = false;
  given_up_ = reason;
}

bool PlanGraphs::capture(int64_t micro_batch, const std::function<void(int task)>& issue) {
  std::optional<Graph>& graph = graphs_[index(micro_batch)];
  if (graph) return true;
  try {
    graph.emplace(captured(issue));
    return true;
  } catch (const Error& failure) {
    if (use_ == GraphUse::on) {
      throw error("{} (--graphs off runs steps task by task)", failure.what());
    }
    give_up(failure.what());
    return false;
  }
}

Graph PlanGraphs::captured(const std::function<void(int task)>& issue) const {
  const Stream& origin = runtime_.stream(launcher_);
  origin.begin_capture();
  try {
    origin.record(*fork_);
    for (const StreamId stream : joined_) runtime_.stream(stream).wait(*fork_);
    for (const int task : split_.captured) issue(task);
    for (size_t i = 0; i < joined_.size(); ++i) {
      runtime_.stream(joined_[i]).record(joins_[i]);
      origin.wait(joins_[i]);
    }
  } catch (const Error& failure) {
    // What is thrown here may be only a consequence of what the end of the capture reports.
    std::string end;
    try {
      static_cast<void>(origin.end_capture());
    } catch (const Error& at_end) {
      end = at_end.what();
    }
    if (end.empty()) throw;
    throw error("{} ({})", end, failure.what());
  }
  return origin.end_capture();
}

void PlanGraphs::launch(int64_t micro_batch, bool has_previous) {
  const Stream& stream = runtime_.stream(launcher_);
  if (has_previous) {
    const bool after_graph = launched(micro_batch - 1);
    for (const int task : after_graph ? last_outside_ : events_.last()) {
      stream.wait(events_.done(task, micro_batch - 1));
    }
  }
  for (const int task : last_before_) stream.wait(events_.done(task, micro_batch));
  stream.launch("step", *graphs_[index(micro_batch)]);
  stream.record(end(micro_batch));
  launched_[parity(micro_batch)] = micro_batch;
  for (const StreamId shared : shared_) runtime_.stream(shared).wait(end(micro_batch));
}

}  // namespace tandem
