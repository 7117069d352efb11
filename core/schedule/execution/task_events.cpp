#include "core/schedule/execution/task_events.h"

#include <algorithm>
#include <map>
#include <utility>

namespace tandem {
namespace {

constexpr int parities = 2;

size_t parity(int64_t micro_batch) {
  return size_t(micro_batch % parities);
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

const Event& TaskEvents::start(int task, int64_t micro_batch) const {
  return of(task).start[parity(micro_batch)];
}
const Event& TaskEvents::done(int task, int64_t micro_batch) const {
  return of(task).done[parity(micro_batch)];
}
const Event& TaskEvents::arrived(int task, size_t stream, int64_t micro_batch) const {
  return of(task).arrived[parity(micro_batch)][stream - 1];
}

}  // namespace tandem
