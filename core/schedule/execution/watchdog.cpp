#include "core/schedule/execution/watchdog.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <vector>

#include "core/schedule/plan/ordering.h"

namespace tandem {
namespace {

using Clock = std::chrono::steady_clock;

bool reached(const Event& event) {
  return event.synchronize(0);
}

std::string quoted(const Plan& plan, int task) {
  return fmt::format("'{}'", plan.task(task).label);
}

// What the task may wait for: its waits, and what comes before it on its streams.
std::vector<Dependency> awaited(const Plan& plan, int task) {
  std::vector<Dependency> result = plan.task(task).after;
  const auto before = stream_predecessors(plan);
  const std::vector<Dependency>& on_streams = before[size_t(task)];
  result.insert(result.end(), on_streams.begin(), on_streams.end());
  return result;
}

std::string state(const Plan& plan, const TaskEvents& events, int task, int64_t micro_batch,
                  bool started) {
  std::string waits;
  for (const Dependency& wait : awaited(plan, task)) {
    if (wait.micro_batches_back > 1 || wait.micro_batches_back > micro_batch) continue;
    if (reached(events.done(wait.task, micro_batch - wait.micro_batches_back))) continue;
    waits += fmt::format("{}{}{}", waits.empty() ? "" : ", ", quoted(plan, wait.task),
                         wait.micro_batches_back > 0 ? " of the micro-batch before" : "");
  }
  if (!waits.empty()) return "it waits for " + waits;
  return !started || reached(events.start(task, micro_batch)) ? "it is running"
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

// About the first of these tasks that is not done; "" if all are.
std::string first_unfinished(const Plan& plan, const TaskEvents& events,
                             const std::vector<int>& tasks, int64_t micro_batch, double seconds,
                             bool started) {
  for (const int task : tasks) {
    if (reached(events.done(task, micro_batch))) continue;
    return fmt::format("{}: task {} has not finished in {} s; {}{}", step_name(plan, micro_batch),
                       quoted(plan, task), seconds, state(plan, events, task, micro_batch, started),
                       waiting_for(plan, task));
  }
  return "";
}

std::string unfinished(const Plan& plan, int64_t micro_batch, double seconds) {
  return fmt::format("{} has not finished in {} s", step_name(plan, micro_batch), seconds);
}

}  // namespace

bool Timeout::wait(const Event& event) {
  constexpr double max_slice = 1;
  do {
    const double slice = std::clamp(left_, 0.0, max_slice);
    const auto begin = Clock::now();
    if (event.synchronize(slice)) return true;
    if (check_) check_();
    const double waited = std::chrono::duration<double>(Clock::now() - begin).count();
    if (waited < slice / 2) return false;
    left_ -= std::min(waited, 2 * max_slice);
  } while (left_ > 0);
  return false;
}

std::string explain_stuck(const Plan& plan, const TaskEvents& events, int64_t micro_batch,
                          double seconds, bool started) {
  std::vector<int> all(plan.tasks.size());
  std::iota(all.begin(), all.end(), 0);
  const std::string first = first_unfinished(plan, events, all, micro_batch, seconds, started);
  return first.empty() ? unfinished(plan, micro_batch, seconds) : first;
}

std::string explain_stuck_graph(const Plan& plan, const CaptureSplit& split,
                                const TaskEvents& events, const Event& end, int64_t micro_batch,
                                double seconds) {
  const bool is_after = reached(end);
  std::string first = first_unfinished(plan, events, is_after ? split.after : split.before,
                                       micro_batch, seconds, false);
  if (!first.empty()) return first;
  if (is_after) return unfinished(plan, micro_batch, seconds);
  const auto label = [&](int task) { return plan.task(task).label; };
  return fmt::format(
      "{}: its {} tasks from '{}' to '{}', which run as one graph, have not finished in {} s; "
      "--graphs off names the one that is stuck",
      step_name(plan, micro_batch), split.captured.size(), label(split.captured.front()),
      label(split.captured.back()), seconds);
}

}  // namespace tandem
