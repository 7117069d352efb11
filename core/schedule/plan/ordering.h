// What comes before what in a plan run step after step: the accesses that can conflict, and which
// task instances (step, task) are ordered. Shared by the derivation of waits and the race check, so
// that both mean the same by "conflict" and by "before".
#pragma once

#include <cstdint>
#include <vector>

#include "core/schedule/plan/plan.h"

namespace tandem {

// One declared use of bytes [begin, end) of a buffer, within a slot.
struct Access {
  int task = -1;
  int buffer = -1;
  int64_t begin = 0, end = 0;
  bool writes = false;
};
// Further than the end of every buffer: where a whole buffer ends whose size is not yet known.
constexpr int64_t far_end = int64_t{1} << 48;
// All of the plan's, in the order of the tasks, reads before writes; empty regions are left out.
[[nodiscard]] std::vector<Access> accesses(const Plan& plan);

// Steps over which orders must be looked at: a slot comes again after at most the most slots.
[[nodiscard]] int unrolled_steps(const Plan& plan);

// For every node what is known to come before it. Nodes are added in order, each once.
class Ancestors {
 public:
  explicit Ancestors(size_t nodes);
  // Everything before `earlier`, and it itself, is before `node`.
  void add(size_t node, size_t earlier);
  [[nodiscard]] bool has(size_t node, size_t earlier) const;

 private:
  size_t words_;
  std::vector<uint64_t> bits_;
};

// For each task the last task before it on each of its streams, as a node's distance wants it:
// steps_back 1 for the streams' first tasks.
[[nodiscard]] std::vector<std::vector<Dependency>> stream_predecessors(const Plan& plan);

// The order that the streams and the waits make over `steps` consecutive steps.
class HappensBefore {
 public:
  HappensBefore(const Plan& plan, int steps);
  // Is `first` of some step done before `second`, `steps_apart` steps later, begins?
  [[nodiscard]] bool ordered(int first, int second, int steps_apart) const;

 private:
  size_t tasks_;
  Ancestors ancestors_;
};

}  // namespace tandem
