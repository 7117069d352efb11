// How layers start work on a call's stream: for every element, or by teams of threads that work on
// a group of elements together. The result of a body must not depend on the order of its calls.
// Nothing here allocates or waits; the same shapes give the same bits.
//
// A body is a trivially copyable struct of device pointers and numbers. It is called by value on
// the device: void operator()(int64_t i) const, or in the form of vectors.h, which is nearer to the
// memory's speed, or for teams template <class Team> void operator()(const Team& team, int64_t
// group) const. There,
//   for (int64_t k = team.rank(); k < count; k += team.size()) sum += x[k];
//   sum = team.sum(sum);
// divides the work and gives every thread the sum. All threads of a team must reach each such call.
// tests/cuda_on_host has another version of this header, which runs bodies without a GPU.
#pragma once

#include <cstdint>
#include <type_traits>

#include "plugins/cuda/launch.h"
#include "plugins/cuda/status.h"
#include "plugins/cuda/vectors.h"

namespace tandem::cuda {

// The threads of a block of for_blocks.
constexpr int threads_of_block = threads_per_block;

// The device kind of kernels that use this header.
inline constexpr const char* device_kind = "cuda";

namespace detail {

constexpr unsigned max_in_team = 512;

// Values in memory are there, and not in registers.
#ifdef __CUDA_ARCH__
#define TANDEM_IN_MEMORY asm volatile("" ::: "memory")
#else
#define TANDEM_IN_MEMORY static_cast<void>(0)
#endif

// The threads of a block, a power of two.
class Block {
 public:
  [[nodiscard]] __device__ int64_t rank() const { return threadIdx.x; }
  [[nodiscard]] __device__ int64_t size() const { return blockDim.x; }

  // join(a, b) of the values of all threads whose ranks have the same remainder by `columns`, a
  // power of two, in a fixed order.
  template <class Value, class Join>
  __device__ Value combine(Value value, const Join& join, unsigned columns = 1) const {
    __shared__ Value values[max_in_team];
    const unsigned own = threadIdx.x;
    values[own] = value;
    for (unsigned half = blockDim.x / 2; half >= columns; half /= 2) {
      __syncthreads();
      if (own < half) values[own] = join(values[own], values[own + half]);
    }
    __syncthreads();
    const Value result = values[own & (columns - 1)];
    __syncthreads();  // all threads have read it before the next call writes
    return result;
  }
  [[nodiscard]] __device__ double sum(double value) const {
    return combine(value, [](double a, double b) { return a + b; });
  }
  // Ignores NaN.
  [[nodiscard]] __device__ float highest(float value) const {
    return combine(value, [](float a, float b) { return b > a ? b : a; });
  }
  // In a block of for_blocks: n values of each thread in shared memory, which spare registers.
  template <int n, class Value>
  class OwnValues {
   public:
    __device__ explicit OwnValues(Value* all) : all_(all) {}
    __device__ void clear() const {
      for (int lane = 0; lane < n; ++lane) all_[lane * threads_of_block + threadIdx.x] = Value{};
    }
    template <class Term>
    __device__ void add(const Term& term) const {
      TANDEM_IN_MEMORY;
      TANDEM_UNROLL
      for (int lane = 0; lane < n; ++lane) {
        all_[lane * threads_of_block + threadIdx.x] += term(lane);
      }
    }

   private:
    Value* all_;
  };
  template <int n, class Value>
  __device__ OwnValues<n, Value> own_values() const {
    return OwnValues<n, Value>(all_values<n, Value>());
  }
  // The threads are seen as rows of `columns` threads: calls store(column * n + lane, sum) for the
  // sums of the rows' own values, in a fixed order. The threads behind the last whole row have
  // none.
  template <int n, class Value, class Store>
  __device__ void sum_columns(int columns, const Store& store) const {
    constexpr int size = threads_of_block;
    const Value* all = all_values<n, Value>();
    const int own = static_cast<int>(threadIdx.x), rows = size / columns;
    __syncthreads();
    for (int at = own; at < n * columns; at += size) {
      const int lane = at / columns, column = at - lane * columns;
      Value sum = all[lane * size + column];
      for (int row = 1; row < rows; ++row) sum += all[lane * size + row * columns + column];
      store(column * n + lane, sum);
    }
    __syncthreads();  // all threads have read before the next values are written
  }

 private:
  template <int n, class Value>
  __device__ static Value* all_values() {
    __shared__ Value all[n * threads_of_block];
    return all;
  }
};

// A team of one.
class Alone {
 public:
  [[nodiscard]] __device__ int64_t rank() const { return 0; }
  [[nodiscard]] __device__ int64_t size() const { return 1; }
  template <class Value, class Join>
  __device__ Value combine(Value value, const Join&) const {
    return value;
  }
  [[nodiscard]] __device__ double sum(double value) const { return value; }
  [[nodiscard]] __device__ float highest(float value) const { return value; }
};

template <class Body>
__global__ void __launch_bounds__(threads_per_block) run_elements(int64_t count, const Body body) {
  for (int64_t i = first_element(); i < count; i += element_stride()) body(i);
}

// Two vectors a thread at a time: both are read before the first is written.
template <int n, class Body>
__global__ void __launch_bounds__(threads_per_block) run_vectors(int64_t count, const Body body) {
  const int64_t vectors = count / n, stride = 2 * element_stride();
  int64_t first = 2 * static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (; first < vectors; first += stride) {
    const bool has_second = first + blockDim.x < vectors;
    const int64_t second = has_second ? first + blockDim.x : first;
    const auto first_read = body.template read<n>(first * n);
    const auto second_read = body.template read<n>(second * n);
    body.template write<n>(first * n, first_read);
    if (has_second) body.template write<n>(second * n, second_read);
  }
  if constexpr (n > 1) {
    const int64_t last = vectors * n + first_element();
    if (last < count) body.template write<1>(last, body.template read<1>(last));
  }
}

template <int n, class Body>
void launch_vectors(const sdk::Call& call, int64_t count, const Body& body) {
  const unsigned blocks = blocks_of_vectors(count, 2 * n);
  run_vectors<n><<<blocks, threads_per_block, 0, stream_of(call)>>>(count, body);
}

template <class Body>
__global__ void __launch_bounds__(threads_per_block) run_alone(int64_t groups, const Body body) {
  for (int64_t group = first_element(); group < groups; group += element_stride()) {
    body(Alone(), group);
  }
}

template <class Body>
__global__ void __launch_bounds__(max_in_team) run_teams(int64_t groups, const Body body) {
  for (int64_t group = blockIdx.x; group < groups; group += gridDim.x) body(Block(), group);
}

template <int resident, class Body>
__global__ void __launch_bounds__(threads_of_block, resident)
    run_blocks(int64_t count, const Body body) {
  for (int64_t block = blockIdx.x; block < count; block += gridDim.x) body(Block(), block);
}

}  // namespace detail

// body(i) for i in [0, count). A body in the form of vectors.h is called for vectors if its memory
// allows it.
template <class Body>
void for_each(const sdk::Call& call, int64_t count, const Body& body) {
  static_assert(std::is_trivially_copyable_v<Body>);
  if (count == 0) return;
  if constexpr (VectorBody<Body>) {
    if (body.can_vectorize()) {
      detail::launch_vectors<Body::at_once>(call, count, body);
    } else {
      detail::launch_vectors<1>(call, count, body);
    }
  } else {
    detail::run_elements<<<blocks_for(count), threads_per_block, 0, stream_of(call)>>>(count, body);
  }
  check_launch("an element-wise kernel");
}

// Groups of elements for teams.
struct Teams {
  int64_t groups;
  int64_t work;               // elements per group, approximately
  bool side_by_side = false;  // neighboring groups are neighbors in memory
};

// body(team, group) for all groups. The size of a team depends only on `teams`.
template <class Body>
void for_teams(const sdk::Call& call, const Teams& teams, const Body& body) {
  static_assert(std::is_trivially_copyable_v<Body>);
  if (teams.groups == 0) return;
  if (teams.work <= 32 || (teams.side_by_side && teams.groups >= 2048)) {
    detail::run_alone<<<blocks_for(teams.groups), threads_per_block, 0, stream_of(call)>>>(
        teams.groups, body);
  } else {
    const unsigned threads = teams.work >= 4096  ? detail::max_in_team
                             : teams.work >= 512 ? 256
                                                 : 64;
    const auto blocks = static_cast<unsigned>(std::min<int64_t>(teams.groups, 1 << 20));
    detail::run_teams<<<blocks, threads, 0, stream_of(call)>>>(teams.groups, body);
  }
  check_launch("a kernel of teams");
}

// body(team, block) for all blocks. A team has threads_of_block threads, and a multiprocessor has
// room for `resident` blocks at a time: 2 leave 128 registers for a thread, enough for one that
// reads far ahead, and 3 leave 80.
template <int resident = 2, class Body>
void for_blocks(const sdk::Call& call, int64_t count, const Body& body) {
  static_assert(std::is_trivially_copyable_v<Body>);
  if (count == 0) return;
  const auto blocks = static_cast<unsigned>(std::min<int64_t>(count, 1 << 20));
  detail::run_blocks<resident><<<blocks, threads_of_block, 0, stream_of(call)>>>(count, body);
  check_launch("a kernel of blocks");
}

// Within device memory. If source and target are the same, nothing is copied; otherwise they must
// not overlap.
template <class T>
void copy(const sdk::Call& call, const T* source, T* target, int64_t count) {
  if (source == target || count == 0) return;
  check(cudaMemcpyAsync(target, source, static_cast<size_t>(count) * sizeof(T),
                        cudaMemcpyDeviceToDevice, stream_of(call)),
        "cudaMemcpyAsync");
}

inline void clear(const sdk::Call& call, float* target, int64_t count) {
  if (count == 0) return;
  check(cudaMemsetAsync(target, 0, static_cast<size_t>(count) * sizeof(float), stream_of(call)),
        "cudaMemsetAsync");
}

}  // namespace tandem::cuda
