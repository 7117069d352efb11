// plugins/cuda/teams.h for a machine without a GPU. Bodies run on the host, elements in a scrambled
// order and teams as threads that take turns and wait for each other, so that a result that depends
// on an order, or a read before another thread's write, is detected.
#pragma once

#include <ucontext.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <type_traits>
#include <vector>

#include "plugins/cuda/vectors.h"
#include "plugins/sdk.h"
#include "tests/cuda_on_host/test_stream.h"

namespace tandem::cuda {

inline constexpr const char* device_kind = "cuda_on_host";
constexpr int threads_of_block = 4;

class DeviceWork {
 public:
  explicit DeviceWork(const sdk::Call& call)
      : stream_(static_cast<const TestStream*>(call.native_stream)) {
    stream_->open_memory(stream_->context);
  }
  ~DeviceWork() { stream_->close_memory(stream_->context); }
  DeviceWork(const DeviceWork&) = delete;
  DeviceWork& operator=(const DeviceWork&) = delete;

 private:
  const TestStream* stream_;
};

namespace detail {

// The threads of a team, as contexts of one host thread that take turns: each runs until it waits
// for the others, or is done. No scheduler is involved.
class TurnTakers {
 public:
  TurnTakers(int64_t size, const std::function<void(int64_t rank)>& body)
      : body_(&body), contexts_(static_cast<size_t>(size)) {
    for (size_t rank = 0; rank < contexts_.size(); ++rank) {
      ucontext_t& context = contexts_[rank];
      getcontext(&context);
      stacks_.emplace_back(stack_bytes);
      context.uc_stack.ss_sp = stacks_.back().data();
      context.uc_stack.ss_size = stack_bytes;
      context.uc_link = rank + 1 < contexts_.size() ? &contexts_[rank + 1] : &caller_;
      const auto self = reinterpret_cast<uintptr_t>(this);
      makecontext(&context, reinterpret_cast<void (*)()>(&start), 3, static_cast<unsigned>(rank),
                  static_cast<unsigned>(self >> 32), static_cast<unsigned>(self));
    }
  }
  // Runs until all are done, each in turn when it does not wait.
  void run() { swapcontext(&caller_, contexts_.data()); }
  // Called by thread `rank`: returns when all others have reached their wait, too.
  void wait(int64_t rank) {
    const auto own = static_cast<size_t>(rank);
    swapcontext(&contexts_[own], &contexts_[(own + 1) % contexts_.size()]);
  }

 private:
  static constexpr size_t stack_bytes = 256 << 10;
  static void start(unsigned rank, unsigned high, unsigned low) {
    auto* self = reinterpret_cast<TurnTakers*>(uintptr_t{high} << 32 | low);
    (*self->body_)(rank);
  }
  const std::function<void(int64_t)>* body_;
  std::vector<ucontext_t> contexts_;
  std::vector<std::vector<char>> stacks_;
  ucontext_t caller_{};
};

class HostTeam {
 public:
  HostTeam(TurnTakers* others, void* shared, int64_t rank, int64_t size)
      : others_(others), shared_(shared), rank_(rank), size_(size) {}
  [[nodiscard]] int64_t rank() const { return rank_; }
  [[nodiscard]] int64_t size() const { return size_; }
  template <class Value, class Join>
  Value combine(Value value, const Join& join, unsigned columns = 1) const {
    static_assert(sizeof(Value) <= bytes_of_thread);
    auto* values = static_cast<unsigned char*>(shared_);
    const auto at = [&](int64_t i) { return values + i * bytes_of_thread; };
    std::memcpy(at(rank_), &value, sizeof value);
    wait();
    const int64_t column = rank_ % columns;
    Value result;
    std::memcpy(&result, at(column), sizeof result);
    for (int64_t i = column + columns; i < size_; i += columns) {
      Value other;
      std::memcpy(&other, at(i), sizeof other);
      result = join(result, other);
    }
    wait();
    return result;
  }
  [[nodiscard]] double sum(double value) const {
    return combine(value, [](double a, double b) { return a + b; });
  }
  [[nodiscard]] float highest(float value) const {
    return combine(value, [](float a, float b) { return b > a ? b : a; });
  }
  template <int n, class Value>
  class OwnValues {
   public:
    explicit OwnValues(Value* values) : values_(values) {}
    void clear() const { std::fill_n(values_, n, Value{}); }
    template <class Term>
    void add(const Term& term) const {
      for (int lane = 0; lane < n; ++lane) values_[lane] += term(lane);
    }

   private:
    Value* values_;
  };
  template <int n, class Value>
  OwnValues<n, Value> own_values() const {
    static_assert(n * sizeof(Value) <= bytes_of_thread);
    return OwnValues<n, Value>(
        reinterpret_cast<Value*>(static_cast<unsigned char*>(shared_) + rank_ * bytes_of_thread));
  }
  template <int n, class Value, class Store>
  void sum_columns(int columns, const Store& store) const {
    const auto* bytes = static_cast<const unsigned char*>(shared_);
    wait();
    for (int64_t at = rank_; at < n * columns; at += size_) {
      Value sum{};
      for (int64_t row = 0; row < size_ / columns; ++row) {
        const int64_t thread = row * columns + at / n;
        sum += reinterpret_cast<const Value*>(bytes + thread * bytes_of_thread)[at % n];
      }
      store(at, sum);
    }
    wait();
  }

  static constexpr int64_t bytes_of_thread = 128;  // of the shared memory

 private:
  void wait() const {
    if (size_ > 1) others_->wait(rank_);
  }
  TurnTakers* others_;
  void* shared_;
  int64_t rank_, size_;
};

// A number that is coprime to `count`, so that its multiples visit all indices.
inline int64_t scrambling_step(int64_t count) {
  for (const int64_t prime : {7919, 104729, 1299709}) {
    if (count == 0 || count % prime != 0) return prime;
  }
  return 1;
}

}  // namespace detail

namespace detail {

// Two vectors at a time as on a GPU: both are read before the first is written.
template <int n, class Body>
void run_pair(int64_t first, int64_t second, const Body& body) {
  const auto first_read = body.template read<n>(first);
  const auto second_read = body.template read<n>(second);
  body.template write<n>(first, first_read);
  if (first != second) body.template write<n>(second, second_read);
}
// Every other pair is processed element by element: results must not depend on it.
template <int n, class Body>
void run_vectors(int64_t count, const Body& body) {
  const int64_t vectors = count / n, step = scrambling_step(vectors);
  const auto place = [&](int64_t number) { return number * step % vectors * n; };
  for (int64_t v = 0; v < vectors; v += 2) {
    const int64_t first = place(v), second = v + 1 < vectors ? place(v + 1) : first;
    if (v % 4 == 0) {
      run_pair<n>(first, second, body);
    } else {
      for (int64_t k = 0; k < n; ++k) run_pair<1>(first + k, second + k, body);
    }
  }
  for (int64_t i = vectors * n; i < count; ++i) run_pair<1>(i, i, body);
}

}  // namespace detail

template <class Body>
void for_each(const sdk::Call& call, int64_t count, const Body& body) {
  static_assert(std::is_trivially_copyable_v<Body>);
  if (count == 0) return;
  const DeviceWork work(call);
  if constexpr (VectorBody<Body>) {
    if (body.can_vectorize()) return detail::run_vectors<Body::at_once>(count, body);
    detail::run_vectors<1>(count, body);
  } else {
    const int64_t step = detail::scrambling_step(count);
    for (int64_t i = 0; i < count; ++i) body(i * step % count);
  }
}

struct Teams {
  int64_t groups;
  int64_t work;
  bool side_by_side = false;
};

namespace detail {

template <class Body>
void run_teams(const sdk::Call& call, int64_t groups, int64_t size, const Body& body) {
  static_assert(std::is_trivially_copyable_v<Body>);
  if (groups == 0) return;
  const DeviceWork work(call);
  std::vector<unsigned char> shared(static_cast<size_t>(size * HostTeam::bytes_of_thread));
  const int64_t step = scrambling_step(groups);
  TurnTakers* takers = nullptr;
  const std::function<void(int64_t)> work_of = [&](int64_t rank) {
    const HostTeam team(takers, shared.data(), rank, size);
    for (int64_t group = 0; group < groups; ++group) body(team, group * step % groups);
  };
  if (size == 1) return work_of(0);
  TurnTakers threads(size, work_of);
  takers = &threads;
  threads.run();
}

}  // namespace detail

// As on a GPU, many groups are processed by teams of one, few by teams of four.
template <class Body>
void for_teams(const sdk::Call& call, const Teams& teams, const Body& body) {
  detail::run_teams(call, teams.groups, teams.groups > 256 ? 1 : 4, body);
}

template <int resident = 2, class Body>
void for_blocks(const sdk::Call& call, int64_t count, const Body& body) {
  detail::run_teams(call, count, threads_of_block, body);
}

template <class T>
void copy(const sdk::Call& call, const T* source, T* target, int64_t count) {
  if (source == target || count == 0) return;
  const DeviceWork work(call);
  std::copy_n(source, count, target);
}

inline void clear(const sdk::Call& call, float* target, int64_t count) {
  const DeviceWork work(call);
  std::fill_n(target, count, 0.0F);
}

}  // namespace tandem::cuda
