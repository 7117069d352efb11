// Measures the plans of a convolution's passes, in memory that is freed afterwards.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "plugins/cuda/dnn_engines.h"
#include "plugins/cuda/scratch_memory.h"

namespace tandem::cuda::detail {

class DeviceMemory {
 public:
  DeviceMemory() = default;
  ~DeviceMemory() { static_cast<void>(cudaFree(address_)); }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // False: there is not enough memory.
  bool allocate(int64_t bytes) {
    const cudaError_t error = cudaMalloc(&address_, static_cast<size_t>(bytes));
    if (error != cudaErrorMemoryAllocation) check(error, "cudaMalloc");
    static_cast<void>(cudaGetLastError());
    return error == cudaSuccess;
  }
  [[nodiscard]] void* address() const { return address_; }

 private:
  void* address_ = nullptr;
};

// Tensors, weights, bias and scratch memory of a convolution, all zeros: the values do not change
// the time that cuDNN takes.
class MeasuringMemory {
 public:
  MeasuringMemory(const sdk::Call& call, int64_t x, int64_t weight, int64_t y, int64_t bias,
                  int64_t max_scratch) {
    const std::array<int64_t, 3> sizes{scratch_part(x), scratch_part(weight), scratch_part(y)};
    const int64_t bias_begin = sizes[0] + sizes[1] + sizes[2];
    const int64_t tensors = bias_begin + scratch_part(bias);
    // With less scratch memory, fewer engines are measured; this is enough for the simplest ones.
    constexpr int64_t min_scratch = int64_t{16} << 20;
    for (int64_t scratch = max_scratch; scratch >= min_scratch && !has_room_; scratch /= 4) {
      has_room_ = memory_.allocate(tensors + scratch);
      scratch_bytes_ = scratch;
    }
    if (!has_room_) return;
    char* const begin = static_cast<char*>(memory_.address());
    operands_ = {begin, begin + sizes[0], begin + sizes[0] + sizes[1], begin + bias_begin};
    scratch_ = begin + tensors;
    const auto stream = static_cast<cudaStream_t>(call.native_stream);
    check(cudaMemsetAsync(begin, 0, static_cast<size_t>(tensors), stream), "cudaMemsetAsync");
  }

  // False: nothing can be measured.
  [[nodiscard]] bool has_room() const { return has_room_; }
  [[nodiscard]] const Operands& operands() const { return operands_; }
  [[nodiscard]] void* scratch() const { return scratch_; }
  [[nodiscard]] int64_t scratch_bytes() const { return scratch_bytes_; }

 private:
  DeviceMemory memory_;
  bool has_room_ = false;
  Operands operands_{};
  void* scratch_ = nullptr;
  int64_t scratch_bytes_ = 0;
};

class TimedEvent {
 public:
  TimedEvent() { check(cudaEventCreate(&event_), "cudaEventCreate"); }
  ~TimedEvent() { static_cast<void>(cudaEventDestroy(event_)); }
  TimedEvent(const TimedEvent&) = delete;
  TimedEvent& operator=(const TimedEvent&) = delete;

  void record(const sdk::Call& call) {
    check(cudaEventRecord(event_, static_cast<cudaStream_t>(call.native_stream)),
          "cudaEventRecord");
  }
  [[nodiscard]] double milliseconds_since(const TimedEvent& begin) const {
    check(cudaEventSynchronize(event_), "cudaEventSynchronize");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin.event_, event_), "cudaEventElapsedTime");
    return static_cast<double>(milliseconds);
  }

 private:
  cudaEvent_t event_ = nullptr;
};

// Issues the plan once. False: cuDNN cannot run it, for instance without memory of its own.
inline bool runs_once(const sdk::Call& call, const Plan& plan, const MeasuringMemory& memory,
                      TimedEvent& end) {
  if (plan.run(dnn_of(call), memory.operands(), memory.scratch()) != CUDNN_STATUS_SUCCESS) {
    return false;
  }
  end.record(call);
  return true;
}

// The shortest time of several runs after one that loads the kernels; that one's if it takes so
// much longer than `best`, the fastest plan so far (negative: none), that the plan is hardly
// faster. Negative if cuDNN cannot run the plan.
inline double milliseconds_of(const sdk::Call& call, const Plan& plan,
                              const MeasuringMemory& memory, double best) {
  constexpr size_t timed_runs = 3;
  constexpr double loading = 500, slower = 3;
  TimedEvent begin;
  std::array<TimedEvent, timed_runs + 1> ends;  // of each run, beginning with the first
  begin.record(call);
  if (!runs_once(call, plan, memory, ends[0])) return -1;
  const double first = ends[0].milliseconds_since(begin);
  if (best >= 0 && first > slower * best + loading) return first;
  // One more keeps the GPU at work while the others are issued.
  if (!runs_once(call, plan, memory, ends[0])) return -1;
  for (size_t i = 1; i < ends.size(); ++i) {
    if (!runs_once(call, plan, memory, ends[i])) return -1;
  }
  double shortest = ends[1].milliseconds_since(ends[0]);
  for (size_t i = 2; i < ends.size(); ++i) {
    shortest = std::min(shortest, ends[i].milliseconds_since(ends[i - 1]));
  }
  return shortest;
}

}  // namespace tandem::cuda::detail
