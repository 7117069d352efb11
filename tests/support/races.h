// The check of a finished plan: tasks that touch the same memory, one of them writing, with no
// order between them.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/schedule/plan/memory_plan.h"
#include "core/schedule/plan/ordering.h"
#include "core/schedule/plan/plan.h"

namespace tandem::test {

inline std::vector<Access> accesses(const Plan& plan) {
  std::vector<Access> result;
  for_each_access(plan, [&](const Access& access) { result.push_back(access); });
  return result;
}

// The order that the streams and the waits make over consecutive micro-batches.
class HappensBefore {
 public:
  HappensBefore(const Plan& plan, int micro_batches);
  // Whether `first` of some micro-batch is done before `second`, so many micro-batches later,
  // begins.
  [[nodiscard]] bool ordered(int first, int second, int micro_batches_apart) const;

 private:
  size_t tasks_;
  Ancestors ancestors_;
};

inline HappensBefore::HappensBefore(const Plan& plan, int micro_batches)
    : tasks_(plan.tasks.size()), ancestors_(plan, size_t(micro_batches)) {
  const std::vector<std::vector<Dependency>> predecessors = stream_predecessors(plan);
  for (size_t node = 0; node < tasks_ * size_t(micro_batches); ++node) {
    const size_t run = node / tasks_, task = node % tasks_;
    for (const auto* list : {&predecessors[task], &plan.tasks[task].after}) {
      for (const Dependency& dependency : *list) {
        const size_t back = size_t(dependency.micro_batches_back);
        if (back > run) continue;
        ancestors_.add(node, (run - back) * tasks_ + size_t(dependency.task));
      }
    }
  }
}

inline bool HappensBefore::ordered(int first, int second, int micro_batches_apart) const {
  // Orders do not depend on the micro-batch they begin in, so the first one stands for all.
  return ancestors_.has(size_t(micro_batches_apart) * tasks_ + size_t(second), size_t(first));
}

struct Race {
  int first = -1, second = -1;  // tasks
  int micro_batches_apart = 0;
  int buffer = -1;  // of the first
  // "'update conv1 @0' and 'forward conv1 @0' of the next micro-batch both use ..., unordered"
  std::string text;
};

namespace race_search {

// An access of one micro-batch, as bytes of a space in which addresses can be compared.
struct Use {
  Interval bytes;
  int micro_batch = 0;
  const Access* access = nullptr;
};
using Space = std::pair<int, int>;  // buffer and slot, or arena and device
enum Arena : int { persistent_arena = -1, transient_arena = -2, extended_arena = -3 };  // no buffer

// Without addresses every slot of every buffer is a space; with them every arena is one. A buffer
// whose address is the caller's is always a space of its own.
inline std::pair<Space, Use> place(const Plan& plan, const MemoryPlan* memory, const Access& access,
                                   int micro_batch) {
  const Buffer& buffer = plan.buffers[size_t(access.buffer)];
  const int slot = micro_batch % buffer.slots;
  if (memory == nullptr || buffer.kind == BufferKind::external) {
    return {Space(access.buffer, slot), {access.bytes, micro_batch, &access}};
  }
  const bool is_persistent = buffer.device < 0 || buffer.kind == BufferKind::persistent;
  const int arena = buffer.is_extended ? extended_arena
                    : is_persistent    ? persistent_arena
                                       : transient_arena;
  const int64_t base = memory->offsets[size_t(access.buffer)] + slot * slot_stride(buffer);
  const int64_t end = std::min(access.bytes.end, buffer.bytes);
  const Interval bytes{base + access.bytes.begin, base + end};
  return {Space(arena, buffer.device), {bytes, micro_batch, &access}};
}

inline std::map<Space, std::vector<Use>> uses(const Plan& plan, const MemoryPlan* memory,
                                              const std::vector<Access>& list, int micro_batches) {
  std::map<Space, std::vector<Use>> result;
  for (int m = 0; m < micro_batches; ++m) {
    for (const Access& access : list) {
      auto [space, use] = place(plan, memory, access, m);
      if (!use.bytes.is_empty()) result[space].push_back(use);
    }
  }
  for (auto& [space, of_space] : result) {
    std::sort(of_space.begin(), of_space.end(),
              [](const Use& a, const Use& b) { return a.bytes.begin < b.bytes.begin; });
  }
  return result;
}

inline std::string describe(const Plan& plan, const Race& race, int other_buffer) {
  const auto label = [&](int task) { return plan.tasks[size_t(task)].label; };
  const auto name = [&](int buffer) {
    const Buffer& b = plan.buffers[size_t(buffer)];
    return fmt::format("'{}' @{}", b.name, b.device);
  };
  const std::string when = race.micro_batches_apart == 0 ? ""
                           : race.micro_batches_apart == 1
                               ? " of the next micro-batch"
                               : fmt::format(", {} micro-batches later,", race.micro_batches_apart);
  const std::string what =
      race.buffer == other_buffer
          ? fmt::format("both use {}", name(race.buffer))
          : fmt::format("use {} and {} in the same place", name(race.buffer), name(other_buffer));
  return fmt::format("'{}' and '{}'{} {}, unordered", label(race.first), label(race.second), when,
                     what);
}

}  // namespace race_search

// Calls visit(first, second, micro_batches_apart, buffer of first, buffer of second) for tasks that
// touch the same memory, one of them writing, over max(2, slots + 1) consecutive micro-batches,
// some more than once. With `memory` given, by bytes of the arenas; otherwise by buffers.
template <class Visit>
void for_each_shared_use(const Plan& plan, const MemoryPlan* memory, const Visit& visit) {
  const int apart = unrolled_micro_batches(plan);
  // Which slots two buffers have at once depends on the micro-batch, so all their combinations are
  // tried.
  int rounds = 1;
  if (memory != nullptr) {
    for (const Buffer& buffer : plan.buffers) rounds = std::lcm(rounds, buffer.slots);
  }
  const std::vector<Access> list = accesses(plan);
  for (const auto& [space, of_space] : race_search::uses(plan, memory, list, apart + rounds - 1)) {
    for (size_t i = 0; i < of_space.size(); ++i) {
      for (size_t j = i + 1; j < of_space.size() && of_space[j].bytes.begin < of_space[i].bytes.end;
           ++j) {
        const race_search::Use *first = &of_space[i], *second = &of_space[j];
        if (!first->access->writes && !second->access->writes) continue;
        if (std::pair(second->micro_batch, second->access->task) <
            std::pair(first->micro_batch, first->access->task)) {
          std::swap(first, second);
        }
        const int distance = second->micro_batch - first->micro_batch;
        const int a = first->access->task, b = second->access->task;
        if (distance >= apart || (a == b && distance == 0)) continue;
        visit(a, b, distance, first->access->buffer, second->access->buffer);
      }
    }
  }
}

// All such pairs of tasks that have no order.
inline std::vector<Race> find_races(const Plan& plan, const MemoryPlan* memory = nullptr) {
  const HappensBefore order(plan, unrolled_micro_batches(plan));
  std::set<std::tuple<int, int, int>> seen;
  std::vector<Race> races;
  for_each_shared_use(plan, memory, [&](int a, int b, int apart, int buffer, int other) {
    if (order.ordered(a, b, apart) || !seen.emplace(a, b, apart).second) return;
    Race race{a, b, apart, buffer, ""};
    race.text = race_search::describe(plan, race, other);
    races.push_back(std::move(race));
  });
  return races;
}

// Whether find_races() would find any when the plan's tasks wait for others than they do now: which
// tasks share memory is asked for once, not for every change of the waits.
class RaceCheck {
 public:
  explicit RaceCheck(const Plan& plan) {
    std::set<std::tuple<int, int, int>> pairs;
    for_each_shared_use(plan, nullptr,
                        [&](int a, int b, int apart, int, int) { pairs.emplace(a, b, apart); });
    pairs_.assign(pairs.begin(), pairs.end());
  }
  [[nodiscard]] bool has_race(const Plan& plan) const {
    const HappensBefore order(plan, unrolled_micro_batches(plan));
    return !std::all_of(pairs_.begin(), pairs_.end(), [&](const auto& pair) {
      const auto [a, b, apart] = pair;
      return order.ordered(a, b, apart);
    });
  }

 private:
  std::vector<std::tuple<int, int, int>> pairs_;
};

}  // namespace tandem::test
