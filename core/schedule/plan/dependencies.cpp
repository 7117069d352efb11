#include "core/schedule/plan/dependencies.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/schedule/plan/dependency_lists.h"
#include "core/schedule/plan/ordering.h"

namespace tandem {
namespace {

bool share_a_stream(const Task& a, const Task& b) {
  for (const StreamId& stream : a.streams) {
    if (std::find(b.streams.begin(), b.streams.end(), stream) != b.streams.end()) return true;
  }
  return false;
}

// For each task its conflicts with earlier instances, nearest first. Of one task only the nearest
// instance: those farther back come before it on the streams they share.
DependencyLists conflicts(const Plan& plan) {
  std::vector<DependencyLists::Entry> found;
  for_each_conflict(plan, [&](int earlier, int later, int micro_batches_back) {
    if (share_a_stream(plan.task(earlier), plan.task(later))) return;
    found.push_back({later, {earlier, micro_batches_back}});
  });
  DependencyLists result(plan.tasks.size(), found);
  result.sort(&is_nearer);
  return result;
}

// By task: those that no later node asks for after it, with the micro-batches from them to it.
DependencyLists last_users(const std::vector<std::vector<Dependency>>& predecessors,
                           const DependencyLists& candidates) {
  std::vector<std::pair<int, int>> last(predecessors.size());  // micro-batches later, task
  for (size_t task = 0; task < last.size(); ++task) last[task] = {0, static_cast<int>(task)};
  const auto use = [&](size_t task, const auto& list) {
    for (const Dependency& dependency : list) {
      std::pair<int, int>& of_earlier = last[size_t(dependency.task)];
      of_earlier = std::max(of_earlier, {dependency.micro_batches_back, static_cast<int>(task)});
    }
  };
  std::vector<DependencyLists::Entry> result;
  for (size_t task = 0; task < last.size(); ++task) {
    use(task, predecessors[task]);
    use(task, candidates[task]);
  }
  for (size_t task = 0; task < last.size(); ++task) {
    result.push_back({last[task].second, {static_cast<int>(task), last[task].first}});
  }
  return {last.size(), result};
}

}  // namespace

void derive_dependencies(Plan& plan) {
  const size_t tasks = plan.tasks.size(), runs = size_t(unrolled_micro_batches(plan));
  const auto predecessors = stream_predecessors(plan);
  const auto candidates = conflicts(plan);
  const auto forgotten = last_users(predecessors, candidates);
  Ancestors ancestors(plan, runs);
  // The same waits are found in every micro-batch; the last one sees the farthest back.
  for (size_t node = 0; node < tasks * runs; ++node) {
    const size_t run = node / tasks, task = node % tasks;
    const auto node_of = [&](const Dependency& dependency) {
      return (run - size_t(dependency.micro_batches_back)) * tasks + size_t(dependency.task);
    };
    for (const Dependency& dependency : predecessors[task]) {
      if (size_t(dependency.micro_batches_back) <= run) {
        ancestors.add(node, node_of(dependency));
      }
    }
    std::vector<Dependency>& after = plan.tasks[task].after;
    after.clear();
    for (const Dependency& candidate : candidates[task]) {
      if (size_t(candidate.micro_batches_back) > run) continue;
      if (ancestors.has(node, node_of(candidate))) continue;
      ancestors.add(node, node_of(candidate));
      after.push_back(candidate);
    }
    for (const Dependency& dependency : forgotten[task]) {
      if (size_t(dependency.micro_batches_back) > run) continue;
      ancestors.forget(node_of(dependency));
    }
  }
}

}  // namespace tandem
