#include "core/schedule/report/critical_path.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "core/schedule/plan/ordering.h"

namespace tandem {
namespace {

using Instance = std::pair<int64_t, int>;  // micro-batch, task

// Events by instance, in a list that is sorted.
class Instances {
 public:
  explicit Instances(const std::vector<TraceEvent>& events) {
    for (const TraceEvent& event : events) events_.push_back(&event);
    std::stable_sort(events_.begin(), events_.end(),
                     [](const auto* a, const auto* b) { return instance(*a) < instance(*b); });
  }
  // nullptr: none. Of several the last.
  [[nodiscard]] const TraceEvent* find(const Instance& wanted) const {
    const auto after =
        std::upper_bound(events_.begin(), events_.end(), wanted,
                         [](const Instance& a, const TraceEvent* b) { return a < instance(*b); });
    if (after == events_.begin() || instance(**std::prev(after)) != wanted) return nullptr;
    return *std::prev(after);
  }

 private:
  static Instance instance(const TraceEvent& event) { return {event.micro_batch, event.task}; }
  std::vector<const TraceEvent*> events_;
};

// What came before the instance and ended last.
const TraceEvent* awaited(const Instances& events, std::span<const Dependency> on_streams,
                          std::span<const Dependency> waits, int64_t micro_batch) {
  const TraceEvent* last = nullptr;
  for (const auto& list : {on_streams, waits}) {
    for (const Dependency& before : list) {
      const TraceEvent* found = events.find({micro_batch - before.micro_batches_back, before.task});
      if (found != nullptr && (last == nullptr || found->end > last->end)) last = found;
    }
  }
  return last;
}

template <class WaitsOf>
std::vector<PathPart> path_of(const Plan& plan, const std::vector<TraceEvent>& events,
                              const WaitsOf& waits_of) {
  if (events.empty()) return {};
  const Instances by_instance(events);
  const TraceEvent* at = &events.front();
  for (const TraceEvent& event : events) {
    if (event.end > at->end) at = &event;
  }
  const auto on_streams = stream_predecessors(plan);
  std::map<Stage, double> seconds;
  double sum = 0;
  while (at != nullptr) {
    const auto task = size_t(at->task);
    seconds[plan.tasks[task].stage] += at->end - at->start;
    sum += at->end - at->start;
    at = awaited(by_instance, on_streams[task], waits_of(task), at->micro_batch);
  }
  std::vector<PathPart> parts;
  for (const auto& [stage, time] : seconds)
    parts.push_back({stage, time, sum > 0 ? time / sum : 0});
  std::stable_sort(parts.begin(), parts.end(),
                   [](const PathPart& a, const PathPart& b) { return a.seconds > b.seconds; });
  return parts;
}

}  // namespace

std::vector<PathPart> critical_path(const Plan& plan, const std::vector<TraceEvent>& events) {
  return path_of(plan, events, [&](size_t task) -> std::span<const Dependency> {
    return plan.tasks[task].after;
  });
}

std::vector<PathPart> critical_path(const Plan& plan, const std::vector<TraceEvent>& events,
                                    const DependencyLists& before) {
  return path_of(plan, events, [&](size_t task) { return before[task]; });
}

}  // namespace tandem
