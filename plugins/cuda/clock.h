// One time for the events of all GPUs: seconds since the machine was opened, on the host's steady
// clock. A GPU only reports the time between two of its events, as a float of milliseconds, which
// becomes imprecise as it grows. So each GPU has a mark whose host time is known, and a new one
// every few seconds.
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

// An event that was reached at a known time. Events recorded after it are timed relative to it.
struct Mark {
  explicit Mark(cudaEvent_t event) : event(event) {}
  ~Mark() { cudaEventDestroy(event); }
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;

  cudaEvent_t event;
  double seconds = 0;
};

// The time of a new mark: the GPU's own count since the last mark (`by_gpu`), clamped to [host -
// uncertainty, host + uncertainty] if it has drifted.
[[nodiscard]] double reconciled(double by_gpu, double host, double uncertainty);

class GpuClock {
 public:
  // Throws Refusal. `host` must outlive the clock.
  GpuClock(int32_t ordinal, const HostClock& host);
  ~GpuClock();
  GpuClock(const GpuClock&) = delete;
  GpuClock& operator=(const GpuClock&) = delete;

  // The mark for events that are recorded now. Returns at once; sometimes it takes up to a quarter
  // of a millisecond. May be called by any thread whose current GPU is this one.
  [[nodiscard]] std::shared_ptr<const Mark> mark();

 private:
  struct Sample {
    std::shared_ptr<Mark> mark;  // `seconds`: the middle of the measurement
    double uncertainty;
  };
  // Nothing if it is not reached within `patience` seconds.
  std::optional<Sample> sample(double patience);

  const HostClock& host_;
  cudaStream_t stream_ = nullptr;
  std::mutex mutex_;
  std::shared_ptr<const Mark> mark_;
  double renewal_ = 0;  // when the next mark is due
};

// The time at which `event` was reached. It was recorded after `mark`. Throws Refusal.
[[nodiscard]] double seconds_of(cudaEvent_t event, const Mark& mark);

}  // namespace tandem::cuda
