#include "core/schedule/report/critical_path.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/schedule/plan/ordering.h"

namespace tandem {

namespace {

using Instance = std::pair<int64_t, int>;  // micro-batch, task

// What came before the instance and ended last.
const TraceEvent* awaited(const std::map<Instance, const TraceEvent*>& events,
                          const std::vector<Dependency>& on_streams,
                          const std::vector<Dependency>& waits, int64_t micro_batch) {
  const TraceEvent* last = nullptr;
  for (const auto* list : {&on_streams, &waits}) {
    for (const Dependency& before : *list) {
      const auto found = events.find({micro_batch - before.micro_batches_back, before.task});
      if (found == events.end()) continue;
      if (last == nullptr || found->second->end > last->end) last = found->second;
    }
  }
  return last;
}

}  // namespace

std::vector<PathPart> critical_path(const Plan& plan, const std::vector<TraceEvent>& events) {
  if (events.empty()) return {};
  std::map<Instance, const TraceEvent*> by_instance;
  const TraceEvent* at = &events.front();
  for (const TraceEvent& event : events) {
    by_instance[{event.micro_batch, event.task}] = &event;
    if (event.end > at->end) at = &event;
  }
  const auto on_streams = stream_predecessors(plan);
  std::map<Stage, double> seconds;
  double sum = 0;
  while (at != nullptr) {
    const Task& task = plan.tasks[static_cast<size_t>(at->task)];
    seconds[task.stage] += at->end - at->start;
    sum += at->end - at->start;
    at = awaited(by_instance, on_streams[static_cast<size_t>(at->task)], task.after,
                 at->micro_batch);
  }
  std::vector<PathPart> parts;
  for (const auto& [stage, time] : seconds)
    parts.push_back({stage, time, sum > 0 ? time / sum : 0});
  std::stable_sort(parts.begin(), parts.end(),
                   [](const PathPart& a, const PathPart& b) { return a.seconds > b.seconds; });
  return parts;
}

}  // namespace tandem
