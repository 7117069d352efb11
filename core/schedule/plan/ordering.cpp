#include "core/schedule/plan/ordering.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/base/error.h"

namespace tandem {

namespace {

void append(const Plan& plan, int task, const std::vector<Region>& regions, bool writes,
            std::vector<Access>& result) {
  for (const Region& region : regions) {
    if (region.buffer < 0) continue;
    const int64_t end = region.bytes == whole_buffer ? far_end : region.offset + plan.bytes(region);
    const Interval bytes{region.offset, end};
    if (!bytes.is_empty()) result.push_back({task, region.buffer, bytes, writes});
  }
}

}  // namespace

std::vector<Access> accesses(const Plan& plan) {
  std::vector<Access> result;
  for (size_t i = 0; i < plan.tasks.size(); ++i) {
    append(plan, static_cast<int>(i), plan.tasks[i].reads, false, result);
    append(plan, static_cast<int>(i), plan.tasks[i].writes, true, result);
  }
  return result;
}

namespace {

// The accesses that may still overlap those that begin later. Those that end at or before `begin`
// are dropped, and `visit` is called with the others.
template <class Visit>
void visit_open(std::vector<const Access*>& open, int64_t begin, const Visit& visit) {
  size_t kept = 0;
  for (const Access* access : open) {
    if (access->bytes.end <= begin) continue;
    open[kept++] = access;
    visit(*access);
  }
  open.resize(kept);
}

}  // namespace

void for_each_conflict(const Plan& plan,
                       const std::function<void(const Access& a, const Access& b)>& visit) {
  std::vector<std::vector<Access>> by_buffer(plan.buffers.size());
  for (const Access& access : accesses(plan)) {
    by_buffer[static_cast<size_t>(access.buffer)].push_back(access);
  }
  std::vector<const Access*> reads, writes;
  for (std::vector<Access>& list : by_buffer) {
    std::stable_sort(list.begin(), list.end(), [](const Access& a, const Access& b) {
      return a.bytes.begin < b.bytes.begin;
    });
    reads.clear();
    writes.clear();
    for (const Access& access : list) {
      const auto meet = [&](const Access& other) {
        if (access.task == other.task) return;
        access.task < other.task ? visit(access, other) : visit(other, access);
      };
      visit_open(writes, access.bytes.begin, meet);
      if (access.writes) visit_open(reads, access.bytes.begin, meet);
      (access.writes ? writes : reads).push_back(&access);
    }
  }
}

int unrolled_micro_batches(const Plan& plan) {
  int slots = 1;
  for (const Buffer& buffer : plan.buffers) slots = std::max(slots, buffer.slots);
  return slots + 1;
}

Ancestors::Ancestors(const Plan& plan, size_t micro_batches) {
  std::map<std::pair<int, StreamKind>, size_t> numbers;
  for (const Task& task : plan.tasks) {
    std::vector<size_t>& streams = streams_of_.emplace_back();
    if (task.streams.empty()) throw error("task '{}' has no stream", task.label);
    for (const StreamId& stream : task.streams) {
      streams.push_back(
          numbers.try_emplace({stream.device, stream.kind}, numbers.size()).first->second);
    }
  }
  streams_ = numbers.size();
  last_.resize(plan.tasks.size() * micro_batches * streams_);
}

void Ancestors::add(size_t node, size_t earlier) {
  uint32_t* to = &last_[node * streams_];
  const uint32_t* from = &last_[earlier * streams_];
  for (size_t stream = 0; stream < streams_; ++stream) {
    to[stream] = std::max(to[stream], from[stream]);
  }
  for (const size_t stream : streams_of(earlier)) {
    to[stream] = std::max(to[stream], static_cast<uint32_t>(earlier + 1));
  }
}

bool Ancestors::has(size_t node, size_t earlier) const {
  return last_[node * streams_ + streams_of(earlier).front()] > earlier;
}

std::vector<std::vector<Dependency>> stream_predecessors(const Plan& plan) {
  std::vector<std::vector<Dependency>> result(plan.tasks.size());
  std::map<std::pair<int, StreamKind>, Dependency> last;
  // The second round knows which task was the last of the micro-batch before.
  for (int round = 0; round < 2; ++round) {
    for (auto& [stream, dependency] : last) dependency.micro_batches_back = 1;
    for (size_t i = 0; i < plan.tasks.size(); ++i) {
      result[i].clear();
      for (const StreamId& stream : plan.tasks[i].streams) {
        const std::pair key(stream.device, stream.kind);
        if (const auto found = last.find(key); found != last.end()) {
          if (std::find(result[i].begin(), result[i].end(), found->second) == result[i].end()) {
            result[i].push_back(found->second);
          }
        }
        last[key] = {static_cast<int>(i), 0};
      }
    }
  }
  return result;
}

HappensBefore::HappensBefore(const Plan& plan, int micro_batches)
    : tasks_(plan.tasks.size()), ancestors_(plan, static_cast<size_t>(micro_batches)) {
  const std::vector<std::vector<Dependency>> predecessors = stream_predecessors(plan);
  for (size_t node = 0; node < tasks_ * static_cast<size_t>(micro_batches); ++node) {
    const size_t run = node / tasks_, task = node % tasks_;
    for (const auto* list : {&predecessors[task], &plan.tasks[task].after}) {
      for (const Dependency& dependency : *list) {
        const size_t back = static_cast<size_t>(dependency.micro_batches_back);
        if (back > run) continue;
        ancestors_.add(node, (run - back) * tasks_ + static_cast<size_t>(dependency.task));
      }
    }
  }
}

bool HappensBefore::ordered(int first, int second, int micro_batches_apart) const {
  // Orders do not depend on the micro-batch they begin in, so the first one stands for all.
  return ancestors_.has(
      static_cast<size_t>(micro_batches_apart) * tasks_ + static_cast<size_t>(second),
      static_cast<size_t>(first));
}

}  // namespace tandem
