#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/schedule/plan/memory_plan.h"
#include "core/schedule/plan/ordering.h"
#include "core/schedule/plan/plan.h"

namespace tandem {

namespace {

// An access of one step, as bytes of a space in which addresses can be compared.
struct Use {
  int64_t begin = 0, end = 0;
  int step = 0;
  const Access* access = nullptr;
};
using Space = std::pair<int, int>;

// Without addresses every slot of every buffer is a space; with them every arena is one. A buffer
// whose address is the caller's is always a space of its own.
std::pair<Space, Use> place(const Plan& plan, const MemoryPlan* memory, const Access& access,
                            int step) {
  const Buffer& buffer = plan.buffers[static_cast<size_t>(access.buffer)];
  const int slot = step % buffer.slots;
  if (memory == nullptr || buffer.kind == BufferKind::external) {
    return {Space(access.buffer, slot), {access.begin, access.end, step, &access}};
  }
  const bool is_persistent = buffer.device < 0 || buffer.kind == BufferKind::persistent;
  const int arena = buffer.is_extended ? -4 : is_persistent ? -2 : -3;
  const int64_t base =
      memory->places[static_cast<size_t>(access.buffer)].offset + slot * slot_stride(buffer);
  const int64_t end = std::min(access.end, buffer.bytes);
  return {Space(arena, buffer.device), {base + access.begin, base + end, step, &access}};
}

std::map<Space, std::vector<Use>> uses(const Plan& plan, const MemoryPlan* memory,
                                       const std::vector<Access>& list, int steps) {
  std::map<Space, std::vector<Use>> result;
  for (int step = 0; step < steps; ++step) {
    for (const Access& access : list) {
      auto [space, use] = place(plan, memory, access, step);
      if (use.begin < use.end) result[space].push_back(use);
    }
  }
  for (auto& [space, of_space] : result) {
    std::sort(of_space.begin(), of_space.end(),
              [](const Use& a, const Use& b) { return a.begin < b.begin; });
  }
  return result;
}

std::string describe(const Plan& plan, const Race& race, int other_buffer) {
  const auto label = [&](int task) { return plan.tasks[static_cast<size_t>(task)].label; };
  const auto name = [&](int buffer) {
    const Buffer& b = plan.buffers[static_cast<size_t>(buffer)];
    return fmt::format("'{}' @{}", b.name, b.device);
  };
  const std::string when = race.steps_apart == 0 ? ""
                           : race.steps_apart == 1
                               ? " of the next step"
                               : fmt::format(", {} steps later,", race.steps_apart);
  const std::string what =
      race.buffer == other_buffer
          ? fmt::format("both use {}", name(race.buffer))
          : fmt::format("use {} and {} in the same place", name(race.buffer), name(other_buffer));
  return fmt::format("'{}' and '{}'{} {}, unordered", label(race.first), label(race.second), when,
                     what);
}

}  // namespace

std::vector<Race> find_races(const Plan& plan, const MemoryPlan* memory) {
  const int apart = unrolled_steps(plan);
  // Which slots two buffers have at once depends on the step, so all their combinations are tried.
  int rounds = 1;
  if (memory != nullptr) {
    for (const Buffer& buffer : plan.buffers) rounds = std::lcm(rounds, buffer.slots);
  }
  const HappensBefore order(plan, apart);
  const std::vector<Access> list = accesses(plan);
  std::set<std::tuple<int, int, int>> seen;
  std::vector<Race> races;
  for (const auto& [space, of_space] : uses(plan, memory, list, apart + rounds - 1)) {
    for (size_t i = 0; i < of_space.size(); ++i) {
      for (size_t j = i + 1; j < of_space.size() && of_space[j].begin < of_space[i].end; ++j) {
        const Use *first = &of_space[i], *second = &of_space[j];
        if (!first->access->writes && !second->access->writes) continue;
        if (std::pair(second->step, second->access->task) <
            std::pair(first->step, first->access->task)) {
          std::swap(first, second);
        }
        const int steps_apart = second->step - first->step;
        const int a = first->access->task, b = second->access->task;
        if (steps_apart >= apart || (a == b && steps_apart == 0)) continue;
        if (order.ordered(a, b, steps_apart)) continue;
        if (!seen.emplace(a, b, steps_apart).second) continue;
        Race race{a, b, steps_apart, first->access->buffer, ""};
        race.text = describe(plan, race, second->access->buffer);
        races.push_back(std::move(race));
      }
    }
  }
  return races;
}

}  // namespace tandem
