#include "core/schedule/execution/task_events.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/schedule/plan/ordering.h"

namespace tandem {

namespace {

constexpr int parities = 2;

size_t parity(int64_t step) {
  return static_cast<size_t>(step % parities);
}

}  // namespace

TaskEvents::TaskEvents(const Machine& machine, const Plan& plan) : tasks_(plan.tasks.size()) {
  std::map<std::pair<int, StreamKind>, int> last;
  for (size_t i = 0; i < plan.tasks.size(); ++i) {
    const std::vector<StreamId>& streams = plan.tasks[i].streams;
    for (int p = 0; p < parities; ++p) {
      tasks_[i].start.emplace_back(machine);
      tasks_[i].done.emplace_back(machine);
      std::vector<Event>& arrived = tasks_[i].arrived.emplace_back();
      for (size_t s = 1; s < streams.size(); ++s) arrived.emplace_back(machine);
    }
    last[{streams[0].device, streams[0].kind}] = static_cast<int>(i);
  }
  for (const auto& [stream, task] : last) last_.push_back(task);
}

const Event& TaskEvents::start(int task, int64_t step) const {
  return of(task).start[parity(step)];
}
const Event& TaskEvents::done(int task, int64_t step) const {
  return of(task).done[parity(step)];
}
const Event& TaskEvents::arrived(int task, size_t stream, int64_t step) const {
  return of(task).arrived[parity(step)][stream - 1];
}

namespace {

bool reached(const Event& event) {
  return event.synchronize(0);
}

std::string quoted(const Plan& plan, int task) {
  return fmt::format("'{}'", plan.tasks[static_cast<size_t>(task)].label);
}

// What the task may wait for, its streams' order included.
std::vector<Dependency> awaited(const Plan& plan, int task) {
  std::vector<Dependency> result = plan.tasks[static_cast<size_t>(task)].after;
  const auto before = stream_predecessors(plan);
  const std::vector<Dependency>& on_streams = before[static_cast<size_t>(task)];
  result.insert(result.end(), on_streams.begin(), on_streams.end());
  return result;
}

std::string state(const Plan& plan, const TaskEvents& events, int task, int64_t step,
                  bool started) {
  std::string waits;
  for (const Dependency& wait : awaited(plan, task)) {
    if (wait.micro_batches_back > 1 || wait.micro_batches_back > step) continue;
    if (reached(events.done(wait.task, step - wait.micro_batches_back))) continue;
    waits += fmt::format("{}{}{}", waits.empty() ? "" : ", ", quoted(plan, wait.task),
                         wait.micro_batches_back > 0 ? " of the step before" : "");
  }
  if (!waits.empty()) return "it waits for " + waits;
  return !started || reached(events.start(task, step)) ? "it is running"
                                                       : "its stream has not come to it";
}

std::string waiting_for(const Plan& plan, int task) {
  std::vector<std::string> names;
  for (const Task& other : plan.tasks) {
    if (std::find(other.after.begin(), other.after.end(), Dependency{task, 0}) !=
        other.after.end()) {
      names.push_back(other.label);
    }
  }
  if (names.empty()) return "";
  return fmt::format(
      "; '{}'{} for it", names[0],
      names.size() == 1 ? " waits" : fmt::format(" and {} others wait", names.size() - 1));
}

}  // namespace

std::string explain_stuck(const Plan& plan, const TaskEvents& events, int64_t step, double seconds,
                          bool started) {
  for (int task = 0; task < static_cast<int>(plan.tasks.size()); ++task) {
    if (reached(events.done(task, step))) continue;
    return fmt::format("step {}: task {} has not finished in {} s; {}{}", step, quoted(plan, task),
                       seconds, state(plan, events, task, step, started), waiting_for(plan, task));
  }
  return fmt::format("step {} has not finished in {} s", step, seconds);
}

std::string explain_stuck_graph(const Plan& plan, const CaptureSplit& split,
                                const TaskEvents& events, const Event& end, int64_t step,
                                double seconds) {
  const bool is_behind = reached(end);
  for (const int task : is_behind ? split.after : split.before) {
    if (reached(events.done(task, step))) continue;
    return fmt::format("step {}: task {} has not finished in {} s; {}{}", step, quoted(plan, task),
                       seconds, state(plan, events, task, step, false), waiting_for(plan, task));
  }
  if (is_behind) return fmt::format("step {} has not finished in {} s", step, seconds);
  const auto label = [&](int task) { return plan.tasks[static_cast<size_t>(task)].label; };
  return fmt::format(
      "step {}: its {} tasks from '{}' to '{}', which run as one graph, have not finished in {} s; "
      "--graphs off names the one that is stuck",
      step, split.captured.size(), label(split.captured.front()), label(split.captured.back()),
      seconds);
}

}  // namespace tandem
