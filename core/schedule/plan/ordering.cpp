#include "core/schedule/plan/ordering.h"

#include <algorithm>
#include <map>
#include <utility>

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

int unrolled_micro_batches(const Plan& plan) {
  int slots = 1;
  for (const Buffer& buffer : plan.buffers) slots = std::max(slots, buffer.slots);
  return slots + 1;
}

Ancestors::Ancestors(size_t nodes) : words_((nodes + 63) / 64), bits_(nodes * words_) {}

void Ancestors::add(size_t node, size_t earlier) {
  uint64_t* to = &bits_[node * words_];
  const uint64_t* from = &bits_[earlier * words_];
  for (size_t word = 0; word <= earlier / 64; ++word) to[word] |= from[word];
  to[earlier / 64] |= uint64_t{1} << (earlier % 64);
}

bool Ancestors::has(size_t node, size_t earlier) const {
  return (bits_[node * words_ + earlier / 64] >> (earlier % 64) & 1) != 0;
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
    : tasks_(plan.tasks.size()), ancestors_(tasks_ * static_cast<size_t>(micro_batches)) {
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
