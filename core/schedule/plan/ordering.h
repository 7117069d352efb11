// The order of task instances (micro-batch, task) when a plan runs for one micro-batch after
// another: which accesses can conflict, and which instances are ordered. The derivation of waits
// and the race check of tests share these definitions of "conflict" and "before".
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
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
// Calls visit(access) for all of the plan's, in the order of the tasks, reads before writes; empty
// regions are left out.
template <class Visit>
void for_each_access(const Plan& plan, const Visit& visit) {
  for (size_t i = 0; i < plan.tasks.size(); ++i) {
    for (const bool writes : {false, true}) {
      for (const Region& region : writes ? plan.tasks[i].writes : plan.tasks[i].reads) {
        if (region.buffer < 0) continue;
        const int64_t end =
            region.bytes == whole_buffer ? far_end : region.offset + plan.bytes(region);
        const Interval bytes{region.offset, end};
        if (!bytes.is_empty()) visit(Access{static_cast<int>(i), region.buffer, bytes, writes});
      }
    }
  }
}
// Calls visit(earlier, later, micro_batches_back) for tasks of which one must be done before the
// other begins because both access the same bytes and one of them writes, `earlier` so many
// micro-batches before `later`. Of a chain of such tasks only neighbors are visited: a writer
// comes after the writer before it and after those that have read since, a reader after the writer.
// Together with the order of each stream these imply all others. Some are visited more than once.
// The time is that of sorting the accesses, and proportional to the number of calls.
using VisitConflict = std::function<void(int earlier, int later, int micro_batches_back)>;
void for_each_conflict(const Plan& plan, const VisitConflict& visit);

// The number of consecutive micro-batches that show every order: one more than the most slots of a
// buffer, after which its first slot is used again.
[[nodiscard]] int unrolled_micro_batches(const Plan& plan);

// For every node, micro_batch * tasks + task, what is known to come before it. Nodes are added in
// order, each after its predecessors on all its streams. So of each stream the nodes before a node
// are the stream's first ones, and only the last of them is kept. Most nodes have one predecessor
// and share what is known before it, so that memory and time grow with the nodes where streams
// meet, not with all.
class Ancestors {
 public:
  Ancestors(const Plan& plan, size_t micro_batches);
  // `earlier` and everything before it are before `node`.
  void add(size_t node, size_t earlier);
  [[nodiscard]] bool has(size_t node, size_t earlier) const;
  // Frees the node's memory; it must not be asked for any more.
  void forget(size_t node) { known_[node] = {}; }

 private:
  // Of a stream: 1 + the last node; 0: none.
  struct Last {
    uint32_t stream = 0, node = 0;
  };
  // What comes before a node: `recent`, where it has the stream, else `shared`, by stream.
  struct Known {
    std::shared_ptr<std::vector<uint32_t>> shared;
    std::array<Last, 3> recent;
    uint32_t count = 0;  // of `recent`
  };

  [[nodiscard]] static uint32_t last_of(const Known& known, size_t stream);
  void raise(Known& known, const Last& last) const;
  void join(Known& to, const Known& from) const;
  [[nodiscard]] const std::vector<size_t>& streams_of(size_t node) const {
    return streams_of_[node % streams_of_.size()];
  }

  std::vector<std::vector<size_t>> streams_of_;  // by task
  size_t streams_ = 0;
  std::vector<Known> known_;  // by node
};

// For each task the last task before it on each of its streams. A stream's first task follows its
// last one of the micro-batch before.
[[nodiscard]] std::vector<std::vector<Dependency>> stream_predecessors(const Plan& plan);

}  // namespace tandem
