// The order of task instances (micro-batch, task) when a plan runs for one micro-batch after
// another: which accesses can conflict, and which instances are ordered. The derivation of waits
// and the race check share these definitions of "conflict" and "before".
#pragma once

#include <cstdint>
#include <vector>

#include "core/schedule/plan/plan.h"

namespace tandem {

// One declared use of some bytes of a buffer, within a slot.
struct Access {
  int task = -1;
  int buffer = -1;
  Interval bytes;
  bool writes = false;
};
// Beyond the end of every buffer: the end of a whole buffer whose size is not known yet.
constexpr int64_t far_end = int64_t{1} << 48;
// All of the plan's, in the order of the tasks, reads before writes; empty regions are left out.
[[nodiscard]] std::vector<Access> accesses(const Plan& plan);

// The number of consecutive micro-batches that show every order: one more than the most slots of a
// buffer, after which its first slot is used again.
[[nodiscard]] int unrolled_micro_batches(const Plan& plan);

// For every node what is known to come before it. Nodes are added in order, each once.
class Ancestors {
 public:
  explicit Ancestors(size_t nodes);
  // `earlier` and everything before it are before `node`.
  void add(size_t node, size_t earlier);
  [[nodiscard]] bool has(size_t node, size_t earlier) const;

 private:
  size_t words_;
  std::vector<uint64_t> bits_;
};

// For each task the last task before it on each of its streams. A stream's first task follows its
// last one of the micro-batch before.
[[nodiscard]] std::vector<std::vector<Dependency>> stream_predecessors(const Plan& plan);

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

}  // namespace tandem
