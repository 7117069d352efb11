// One time for the events of all GPUs: seconds since the machine was opened, on the host's steady
// clock. A GPU tells only how long it was between two of its own events, as a float of
// milliseconds, which grows coarse: so there is a mark on each GPU whose host time is known, and a
// new one every few seconds.
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>

namespace tandem::cuda {

class HostClock {
 public:
  [[nodiscard]] double now() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - opened_).count();
  }

 private:
  std::chrono::steady_clock::time_point opened_ = std::chrono::steady_clock::now();
};

// An event that was reached at a known time; events recorded behind it are timed against it.
struct Mark {
  explicit Mark(cudaEvent_t event) : event(event) {}
  ~Mark() { cudaEventDestroy(event); }
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;

  cudaEvent_t event;
  double seconds = 0;
};

// What a new mark's time is set to: the GPU's own count since the last mark (`by_gpu`), moved into
// [host - uncertainty, host + uncertainty] where it has drifted out of it.
[[nodiscard]] double reconciled(double by_gpu, double host, double uncertainty);

class GpuClock {
 public:
  // Throws Refusal. `host` outlives the clock.
  GpuClock(int32_t ordinal, const HostClock& host);
  ~GpuClock();
  GpuClock(const GpuClock&) = delete;
  GpuClock& operator=(const GpuClock&) = delete;

  // The mark for events that are recorded now. Returns at once, now and then after up to a quarter
  // of a millisecond. Any thread, with this GPU current.
  [[nodiscard]] std::shared_ptr<const Mark> mark();

 private:
  struct Sample {
    std::shared_ptr<Mark> mark;  // `seconds`: the middle of the time it took
    double uncertainty;
  };
  // None if it is not reached within `patience` seconds.
  std::optional<Sample> sample(double patience);

  const HostClock& host_;
  cudaStream_t stream_ = nullptr;
  std::mutex mutex_;
  std::shared_ptr<const Mark> mark_;
  double renewal_ = 0;  // when the next mark is due
};

// When `event`, recorded behind `mark` and reached, was reached. Throws Refusal.
[[nodiscard]] double seconds_of(cudaEvent_t event, const Mark& mark);

}  // namespace tandem::cuda
