// plugins/cuda/teams.h for a machine without a GPU: bodies run on the host, elements in a scrambled
// order and teams as threads that really wait for each other, so that what depends on an order or
// skips a barrier shows.
#pragma once

#include <algorithm>
#include <barrier>
#include <cstdint>
#include <cstring>
#include <thread>
#include <type_traits>
#include <vector>

#include "plugins/sdk.h"
#include "tests/cuda_on_host/test_stream.h"

namespace tandem::cuda {

inline constexpr const char* device_kind = "cuda_on_host";

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

class HostTeam {
 public:
  HostTeam(std::barrier<>& barrier, void* shared, int64_t rank, int64_t size)
      : barrier_(&barrier), shared_(shared), rank_(rank), size_(size) {}
  [[nodiscard]] int64_t rank() const { return rank_; }
  [[nodiscard]] int64_t size() const { return size_; }
  template <class Value, class Join>
  Value combine(Value value, const Join& join) const {
    static_assert(sizeof(Value) <= 64);
    auto* values = static_cast<unsigned char*>(shared_);
    const auto at = [&](int64_t i) { return values + i * 64; };
    std::memcpy(at(rank_), &value, sizeof value);
    barrier_->arrive_and_wait();
    Value result;
    std::memcpy(&result, at(0), sizeof result);
    for (int64_t i = 1; i < size_; ++i) {
      Value other;
      std::memcpy(&other, at(i), sizeof other);
      result = join(result, other);
    }
    barrier_->arrive_and_wait();
    return result;
  }
  [[nodiscard]] double sum(double value) const {
    return combine(value, [](double a, double b) { return a + b; });
  }
  [[nodiscard]] float highest(float value) const {
    return combine(value, [](float a, float b) { return b > a ? b : a; });
  }

 private:
  std::barrier<>* barrier_;
  void* shared_;
  int64_t rank_, size_;
};

// A number that has no divisor in common with `count`, so that its multiples visit everything.
inline int64_t scrambling_step(int64_t count) {
  for (const int64_t prime : {7919, 104729, 1299709}) {
    if (count % prime != 0) return prime;
  }
  return 1;
}

}  // namespace detail

template <class Body>
void for_each(const sdk::Call& call, int64_t count, const Body& body) {
  static_assert(std::is_trivially_copyable_v<Body>);
  if (count == 0) return;
  const DeviceWork work(call);
  const int64_t step = detail::scrambling_step(count);
  for (int64_t i = 0; i < count; ++i) body(i * step % count);
}

struct Teams {
  int64_t groups;
  int64_t work;
  bool side_by_side = false;
};

// Many groups are worked on by teams of one, as on a GPU, few by teams of four.
template <class Body>
void for_teams(const sdk::Call& call, const Teams& teams, const Body& body) {
  static_assert(std::is_trivially_copyable_v<Body>);
  if (teams.groups == 0) return;
  const DeviceWork work(call);
  const int64_t size = teams.groups > 256 ? 1 : 4;
  std::barrier<> barrier(size);
  std::vector<unsigned char> shared(static_cast<size_t>(size) * 64);
  const int64_t step = detail::scrambling_step(teams.groups);
  const auto run = [&](int64_t rank) {
    const detail::HostTeam team(barrier, shared.data(), rank, size);
    for (int64_t group = 0; group < teams.groups; ++group) body(team, group * step % teams.groups);
  };
  std::vector<std::thread> others;
  for (int64_t rank = 1; rank < size; ++rank) others.emplace_back(run, rank);
  run(0);
  for (std::thread& other : others) other.join();
}

inline void copy(const sdk::Call& call, const float* source, float* target, int64_t count) {
  if (source == target || count == 0) return;
  const DeviceWork work(call);
  std::copy_n(source, count, target);
}

inline void clear(const sdk::Call& call, float* target, int64_t count) {
  const DeviceWork work(call);
  std::fill_n(target, count, 0.0F);
}

}  // namespace tandem::cuda
