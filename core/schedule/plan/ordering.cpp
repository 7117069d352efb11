#include "core/schedule/plan/ordering.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <span>
#include <utility>

#include "core/base/error.h"

namespace tandem {
namespace {

// A part of a buffer whose bytes all have the same history.
struct Part {
  int64_t end = 0;
  int writer = -1;           // the last; -1: none
  std::vector<int> readers;  // since it wrote
};

// What the tasks so far have done with the bytes of one buffer.
class UsedBytes {
 public:
  // Calls visit(part) for every part within the bytes; they are split where the bytes begin and
  // end.
  template <class Visit>
  void visit(const Interval& bytes, const Visit& visit) {
    split(bytes.begin);
    split(bytes.end);
    int64_t covered = bytes.begin;
    for (auto at = parts_.lower_bound(bytes.begin); covered < bytes.end; ++at) {
      if (at == parts_.end() || at->first > covered) {
        const int64_t end = at == parts_.end() ? bytes.end : std::min(bytes.end, at->first);
        at = parts_.emplace_hint(at, covered, Part{end, -1, {}});
      }
      visit(at->second);
      covered = at->second.end;
    }
  }
  // The bytes become one part, without readers.
  void replace(const Interval& bytes, int writer) {
    split(bytes.begin);
    split(bytes.end);
    parts_.erase(parts_.lower_bound(bytes.begin), parts_.lower_bound(bytes.end));
    parts_.emplace(bytes.begin, Part{bytes.end, writer, {}});
  }

 private:
  void split(int64_t at) {
    auto next = parts_.upper_bound(at);
    if (next == parts_.begin()) return;
    const auto part = std::prev(next);
    if (part->first == at || part->second.end <= at) return;
    Part second = part->second;
    part->second.end = at;
    parts_.emplace_hint(next, at, std::move(second));
  }

  std::map<int64_t, Part> parts_;  // by begin
};

// The same of a buffer whose accesses are all to the same bytes, as most are: this is faster.
class UsedWhole {
 public:
  template <class Visit>
  void visit(const Interval&, const Visit& visit) {
    visit(part_);
  }
  void replace(const Interval&, int writer) {
    part_.writer = writer;
    part_.readers.clear();
  }

 private:
  Part part_;
};

// The waits within a micro-batch.
template <class Used>
void visit_conflicts(std::span<const Access> list, Used& used, const VisitConflict& visit) {
  for (const Access& access : list) {
    used.visit(access.bytes, [&](Part& part) {
      if (part.writer >= 0 && part.writer != access.task) visit(part.writer, access.task, 0);
      if (!access.writes) {
        if (part.readers.empty() || part.readers.back() != access.task) {
          part.readers.push_back(access.task);
        }
        return;
      }
      for (const int reader : part.readers) {
        if (reader != access.task) visit(reader, access.task, 0);
      }
    });
    if (access.writes) used.replace(access.bytes, access.task);
  }
}

// The waits for the micro-batch before that used the same slots; `used` is what that one has left.
// A task comes after itself on its own streams, so it waits for later ones only.
template <class Used>
void visit_carried_conflicts(std::span<const Access> list, Used& used, int slots,
                             const VisitConflict& visit) {
  for (const Access& access : list) {
    used.visit(access.bytes, [&](Part& part) {
      if (part.writer > access.task) visit(part.writer, access.task, slots);
      if (!access.writes) return;
      for (const int reader : part.readers) {
        if (reader > access.task) visit(reader, access.task, slots);
      }
    });
    if (access.writes) used.replace(access.bytes, -1);
  }
}

template <class Used>
void visit_all_conflicts(std::span<const Access> list, Used& used, int slots,
                         const VisitConflict& visit) {
  visit_conflicts(list, used, visit);
  visit_carried_conflicts(list, used, slots, visit);
}

}  // namespace

void for_each_conflict(const Plan& plan, const VisitConflict& visit) {
  std::vector<size_t> ends(plan.buffers.size() + 1);  // in a list by buffer
  for_each_access(plan, [&](const Access& access) { ++ends[size_t(access.buffer) + 1]; });
  std::partial_sum(ends.begin(), ends.end(), ends.begin());
  std::vector<Access> by_buffer(ends.back());
  std::vector<size_t> next(ends.begin(), ends.end() - 1);
  for_each_access(plan,
                  [&](const Access& access) { by_buffer[next[size_t(access.buffer)]++] = access; });
  UsedWhole whole;  // of all such buffers one after the other: its memory is used again
  for (size_t buffer = 0; buffer < plan.buffers.size(); ++buffer) {
    const std::span<const Access> list(by_buffer.data() + ends[buffer],
                                       ends[buffer + 1] - ends[buffer]);
    if (list.empty()) continue;
    const auto is_same = [&](const Access& access) { return access.bytes == list[0].bytes; };
    const int slots = plan.buffers[buffer].slots;
    if (std::all_of(list.begin(), list.end(), is_same)) {
      whole.replace({}, -1);
      visit_all_conflicts(list, whole, slots, visit);
    } else {
      UsedBytes used;
      visit_all_conflicts(list, used, slots, visit);
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
  known_.resize(plan.tasks.size() * micro_batches);
}

uint32_t Ancestors::last_of(const Known& known, size_t stream) {
  for (uint32_t i = 0; i < known.count; ++i) {
    if (known.recent[i].stream == stream) return known.recent[i].node;
  }
  return known.shared == nullptr ? 0 : (*known.shared)[stream];
}

void Ancestors::raise(Known& known, const Last& last) const {
  if (last_of(known, last.stream) >= last.node) return;
  for (uint32_t i = 0; i < known.count; ++i) {
    if (known.recent[i].stream != last.stream) continue;
    known.recent[i].node = last.node;
    return;
  }
  if (known.count < known.recent.size()) {
    known.recent[known.count++] = last;
    return;
  }
  auto all = known.shared == nullptr ? std::make_shared<std::vector<uint32_t>>(streams_)
                                     : std::make_shared<std::vector<uint32_t>>(*known.shared);
  for (const Last& recent : known.recent) (*all)[recent.stream] = recent.node;
  (*all)[last.stream] = last.node;
  known = {std::move(all), {}, 0};
}

void Ancestors::join(Known& to, const Known& from) const {
  if (to.shared == nullptr) {
    to.shared = from.shared;  // which may be less than what is recent
  } else if (from.shared != nullptr && from.shared != to.shared) {
    if (to.shared.use_count() > 1) {
      to.shared = std::make_shared<std::vector<uint32_t>>(*to.shared);
    }
    for (size_t stream = 0; stream < streams_; ++stream) {
      (*to.shared)[stream] = std::max((*to.shared)[stream], (*from.shared)[stream]);
    }
  }
  // `recent` hides what is shared, and must not be less.
  if (to.shared != nullptr) {
    for (uint32_t i = 0; i < to.count; ++i) {
      to.recent[i].node = std::max(to.recent[i].node, (*to.shared)[to.recent[i].stream]);
    }
  }
  for (uint32_t i = 0; i < from.count; ++i) raise(to, from.recent[i]);
}

void Ancestors::add(size_t node, size_t earlier) {
  if (has(node, earlier)) return;  // and so all that is before it
  Known& to = known_[node];
  const bool is_first = to.shared == nullptr && to.count == 0;
  if (is_first) {
    to = known_[earlier];
  } else {
    join(to, known_[earlier]);
  }
  for (const size_t stream : streams_of(earlier)) {
    raise(to, {static_cast<uint32_t>(stream), static_cast<uint32_t>(earlier + 1)});
  }
}

bool Ancestors::has(size_t node, size_t earlier) const {
  return last_of(known_[node], streams_of(earlier).front()) > earlier;
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

}  // namespace tandem
