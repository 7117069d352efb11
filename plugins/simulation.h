// A machine in virtual time. An operation begins when those that it follows are done; it takes its
// seconds, or copies, which share links. Contended links serve copies in the order in which they
// become ready, so that times do not depend on the order in which operations are issued. The
// backend `sim` and the planner's predictions (core/schedule/cost/step_model.h) use this one
// engine.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "plugins/links.h"

namespace tandem::timing {

// Bytes per second of a simulated device where nothing was measured.
constexpr double default_link_bandwidth = 4e9, host_bandwidth = 12e9, memory_bandwidth = 60e9;

// Of a copy that meets no other, between two devices, within one, or from or to the host.
[[nodiscard]] inline double copy_seconds(const Links& links, int32_t source, int32_t target,
                                         int64_t bytes) {
  if (uses_links(source, target)) return links.seconds(source, target, bytes);
  const auto count = static_cast<double>(bytes);
  return source == target ? 2 * count / memory_bandwidth : count / host_bandwidth;
}

// Operations that follow another one: a ring, whose owner points to the last.
struct Follower;

struct Operation {
  uint32_t stream = 0;              // of copies that become ready together the lowest goes first
  double seconds = 0;               // after its copies
  std::span<const int64_t> copies;  // bytes; one copy after the other
  int32_t source = 0, target = 0;   // of the copies: devices, or TANDEM_HOST

  double begin = 0;  // not before; once it has begun: when
  double end = 0;    // of what it has done so far
  bool is_done = false;

 private:
  friend class Simulation;
  uint32_t missing = 1;  // operations that it follows and that are not done; 1 more until issued
  Follower* last_follower = nullptr;
};

struct Follower {
  Operation* operation = nullptr;
  Follower* next = nullptr;
};

class Simulation {
 public:
  explicit Simulation(Links links) : links_(std::move(links)) {}

  // `later`, which is not yet issued, begins when `earlier` is done.
  void follow(Operation& later, Operation& earlier) {
    if (earlier.is_done) {
      later.begin = std::max(later.begin, earlier.end);
      return;
    }
    ++later.missing;
    Follower* const added = take_follower();
    added->operation = &later;
    Follower*& last = earlier.last_follower;
    added->next = last == nullptr ? added : last->next;
    if (last != nullptr) last->next = added;
    last = added;
  }
  // The operation must stay where it is until it is done.
  void issue(Operation& operation) { release(operation); }

  // Continues until is_done(); false if nothing that was issued can begin any more. Calls
  // `on_begin` with each operation that begins. It may issue others, and still decides what this
  // one takes.
  template <class IsDone, class OnBegin = void (*)(Operation&)>
  bool run(
      const IsDone& is_done, const OnBegin& on_begin = [](Operation&) {}) {
    for (;;) {
      while (!runnable_.empty()) {
        Operation& next = *runnable_.back();
        runnable_.pop_back();
        on_begin(next);
        next.end = next.begin;
        go_on(next);
      }
      if (is_done()) return true;
      if (ready_.empty()) return false;
      Operation& next = *std::get<2>(ready_.top());
      ready_.pop();
      next.end = serve(next.source, next.target, next.copies.front(), next.end);
      next.copies = next.copies.subspan(1);
      go_on(next);
    }
  }

 private:
  using ReadyCopy = std::tuple<double, uint32_t, Operation*>;  // since when; stream

  void release(Operation& operation) {
    if (--operation.missing == 0) runnable_.push_back(&operation);
  }
  void go_on(Operation& operation) {
    if (!operation.copies.empty()) {
      ready_.emplace(operation.end, operation.stream, &operation);
      return;
    }
    operation.end += operation.seconds;
    operation.is_done = true;
    Follower* const last = std::exchange(operation.last_follower, nullptr);
    if (last == nullptr) return;
    Follower* const first = last->next;
    for (Follower* at = first;; at = at->next) {
      at->operation->begin = std::max(at->operation->begin, operation.end);
      release(*at->operation);
      if (at == last) break;
    }
    last->next = std::exchange(free_followers_, first);
  }
  // Of a store that grows with the operations under way.
  Follower* take_follower() {
    if (free_followers_ == nullptr) {
      constexpr size_t chunk = 1024;
      Follower* const added = followers_.emplace_back(std::make_unique<Follower[]>(chunk)).get();
      for (size_t i = 0; i + 1 < chunk; ++i) added[i].next = &added[i + 1];
      free_followers_ = added;
    }
    return std::exchange(free_followers_, free_followers_->next);
  }
  // When a copy is done.
  double serve(int32_t source, int32_t target, int64_t bytes, double ready) {
    if (uses_links(source, target)) return links_.reserve(source, target, bytes, ready);
    const double seconds = copy_seconds(links_, source, target, bytes);
    if (source == target) return ready + seconds;
    double& free = host_free_[{source, target}];
    return free = std::max(ready, free) + seconds;
  }

  Links links_;
  std::map<std::pair<int32_t, int32_t>, double> host_free_;  // when the host's channels are free
  std::vector<std::unique_ptr<Follower[]>> followers_;
  Follower* free_followers_ = nullptr;
  std::vector<Operation*> runnable_;
  std::priority_queue<ReadyCopy, std::vector<ReadyCopy>, std::greater<>> ready_;
};

}  // namespace tandem::timing
