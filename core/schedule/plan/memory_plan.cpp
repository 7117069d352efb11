#include "core/schedule/plan/memory_plan.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "core/data/loader/batch_layout.h"
#include "core/schedule/plan/ordering.h"

namespace tandem {
namespace {

// Large buffers begin on a page, so that what moves them can use whole pages.
constexpr int64_t page = 4096;
constexpr int64_t large = int64_t{1} << 20;

int64_t aligned_begin(int64_t offset, int64_t bytes) {
  const int64_t alignment = bytes >= large ? page : memory_alignment;
  return (offset + alignment - 1) / alignment * alignment;
}

int64_t append(int64_t& arena_bytes, int64_t bytes) {
  const int64_t offset = aligned_begin(arena_bytes, bytes);
  arena_bytes = offset + bytes;
  return offset;
}

// How a buffer is used within a micro-batch: from which task to which, on which one stream. Where a
// pass is repeated, it is free from the last use before to that pass, which writes it again.
struct Life {
  std::vector<Interval> tasks;
  bool one_stream = true;
  bool carried_over = false;  // something is read that only an earlier micro-batch can have written
  std::optional<StreamId> stream;
  IntervalSet written;  // bytes, so far in the micro-batch
};

std::vector<Life> lives(const Plan& plan) {
  std::vector<Life> result(plan.buffers.size());
  for_each_access(plan, [&](const Access& access) {
    Life& life = result[size_t(access.buffer)];
    const Task& task = plan.task(access.task);
    const int64_t bytes = plan.buffer(access.buffer).bytes;
    const Interval used = intersection(access.bytes, {0, bytes});
    const bool writes_all = access.writes && used.begin == 0 && used.end == bytes;
    // What the pass reads itself is not written anew: reads come before writes.
    const bool is_new =
        life.tasks.empty() || (writes_all && repeats(task) && life.tasks.back().end <= access.task);
    if (is_new) life.tasks.push_back({access.task, 0});
    life.tasks.back().end = access.task + 1;
    if (task.streams.size() != 1 || (life.stream && !(*life.stream == task.streams[0]))) {
      life.one_stream = false;
    } else {
      life.stream = task.streams[0];
    }
    if (access.writes) {
      life.written.add(used);
    } else if (!life.written.contains(used)) {
      life.carried_over = true;
    }
  });
  return result;
}

// Bytes of an arena, in use during some tasks.
struct Occupied {
  Interval tasks, bytes;
};

// The lowest offset, at or after `from`, at which that many bytes are free during these tasks.
int64_t first_fit(const std::vector<Occupied>& occupied, const std::vector<Interval>& tasks,
                  int64_t bytes, int64_t from) {
  const auto is_in_use = [&](const Occupied& other) {
    return std::any_of(tasks.begin(), tasks.end(),
                       [&](const Interval& some) { return other.tasks.overlaps(some); });
  };
  int64_t offset = from;
  // In order of their begin.
  auto other = std::lower_bound(occupied.begin(), occupied.end(), from,
                                [](const Occupied& a, int64_t at) { return a.bytes.begin < at; });
  for (; other != occupied.end(); ++other) {
    if (!is_in_use(*other)) continue;
    if (aligned_begin(offset, bytes) + bytes <= other->bytes.begin) break;
    offset = std::max(offset, other->bytes.end);
  }
  return aligned_begin(offset, bytes);
}

// Places the buffers of one stream, largest first; returns the bytes they take together.
int64_t pack(const Plan& plan, const std::vector<Life>& lives, std::vector<int> buffers,
             std::vector<int64_t>& offsets) {
  const auto bytes = [&](int buffer) { return total_bytes(plan.buffer(buffer)); };
  std::stable_sort(buffers.begin(), buffers.end(),
                   [&](int a, int b) { return bytes(a) > bytes(b); });
  std::vector<Occupied> occupied;
  // Where the last buffer of these bytes and tasks ends: nothing before fits another one. So many
  // equal buffers do not take quadratic time.
  std::map<std::tuple<int64_t, int64_t, int64_t>, int64_t> ends;
  const Interval all{0, static_cast<int64_t>(plan.tasks.size())};
  int64_t needed = 0;
  for (const int buffer : buffers) {
    const Life& life = lives[size_t(buffer)];
    const std::vector<Interval> tasks = life.carried_over ? std::vector{all} : life.tasks;
    int64_t from = 0;
    int64_t& end = tasks.size() == 1 ? ends[{bytes(buffer), tasks[0].begin, tasks[0].end}] : from;
    const int64_t offset = first_fit(occupied, tasks, bytes(buffer), end);
    end = offset + bytes(buffer);
    needed = std::max(needed, end);
    for (const Interval& some : tasks) {
      const Occupied mine{some, {offset, offset + bytes(buffer)}};
      occupied.insert(std::upper_bound(occupied.begin(), occupied.end(), mine,
                                       [](const Occupied& a, const Occupied& b) {
                                         return a.bytes.begin < b.bytes.begin;
                                       }),
                      mine);
    }
    offsets[size_t(buffer)] = offset;
  }
  return needed;
}

}  // namespace

MemoryPlan plan_memory(const Plan& plan, bool reuse) {
  MemoryPlan memory;
  memory.offsets.resize(plan.buffers.size());
  memory.persistent_bytes.resize(size_t(plan.devices));
  memory.transient_bytes.resize(size_t(plan.devices));
  memory.extended_bytes.resize(size_t(plan.devices));
  const std::vector<Life> uses = lives(plan);
  std::map<std::pair<int, StreamKind>, std::vector<int>> pools;
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const Buffer& buffer = plan.buffers[i];
    if (buffer.kind == BufferKind::external) {
      memory.prefetched_bytes += ring_slots * total_bytes(buffer);
      continue;
    }
    const size_t device = size_t(buffer.device);
    const bool of_one_stream = uses[i].one_stream && uses[i].stream.has_value();
    if (buffer.device < 0) {
      memory.offsets[i] = append(memory.host_bytes[0], total_bytes(buffer));
    } else if (buffer.is_extended || !buffer.memory.empty()) {
      memory.offsets[i] = append(memory.extended_bytes[device], total_bytes(buffer));
    } else if (buffer.kind == BufferKind::persistent) {
      memory.offsets[i] = append(memory.persistent_bytes[device], total_bytes(buffer));
    } else if (uses[i].tasks.empty()) {
      continue;  // a tensor of a layer none of whose passes here touch it
    } else if (reuse && buffer.slots == 1 && of_one_stream &&
               uses[i].stream->device == buffer.device) {
      pools[{buffer.device, uses[i].stream->kind}].push_back(static_cast<int>(i));
    } else {
      memory.offsets[i] = append(memory.transient_bytes[device], total_bytes(buffer));
    }
  }
  for (const auto& [stream, buffers] : pools) {
    int64_t& arena_bytes = memory.transient_bytes[size_t(stream.first)];
    const int64_t base = (arena_bytes + page - 1) / page * page;
    arena_bytes = base + pack(plan, uses, buffers, memory.offsets);
    for (const int buffer : buffers) memory.offsets[size_t(buffer)] += base;
  }
  return memory;
}

}  // namespace tandem
