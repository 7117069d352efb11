#include "plugins/cuda/clock.h"

#include <algorithm>

#include "plugins/cuda/status.h"

namespace tandem::cuda {

namespace {

constexpr double renewal_seconds = 4;  // a float of 4000 ms is exact to a quarter of a microsecond
constexpr double retry_seconds = 0.25;
constexpr int samples_at_open = 10;

double seconds_between(cudaEvent_t begin, cudaEvent_t end) {
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, begin, end), "cudaEventElapsedTime");
  return static_cast<double>(milliseconds) * 1e-3;
}

}  // namespace

double reconciled(double by_gpu, double host, double uncertainty) {
  return std::clamp(by_gpu, host - uncertainty, host + uncertainty);
}

double seconds_of(cudaEvent_t event, const Mark& mark) {
  return mark.seconds + seconds_between(mark.event, event);
}

GpuClock::GpuClock(int32_t ordinal, const HostClock& host) : host_(host) {
  check(cudaSetDevice(ordinal), "cudaSetDevice");
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  std::optional<Sample> best;
  for (int i = 0; i < samples_at_open; ++i) {
    std::optional<Sample> next = sample(1);
    if (next && (!best || next->uncertainty < best->uncertainty)) best = std::move(next);
  }
  if (!best) throw sdk::failed("cuda:", ordinal, ": no response within a second");
  mark_ = best->mark;
  renewal_ = host_.now() + renewal_seconds;
}

GpuClock::~GpuClock() {
  mark_.reset();
  cudaStreamDestroy(stream_);
}

std::optional<GpuClock::Sample> GpuClock::sample(double patience) {
  cudaEvent_t event = nullptr;
  check(cudaEventCreate(&event), "cudaEventCreate");
  auto mark = std::make_shared<Mark>(event);
  const double begin = host_.now();
  check(cudaEventRecord(event, stream_), "cudaEventRecord");
  for (;;) {
    const cudaError_t status = cudaEventQuery(event);
    const double end = host_.now();
    if (status == cudaSuccess) {
      mark->seconds = (begin + end) / 2;
      return Sample{std::move(mark), (end - begin) / 2};
    }
    if (status != cudaErrorNotReady) check(status, "cudaEventQuery");
    static_cast<void>(cudaGetLastError());  // "not ready" is not an error
    if (end - begin > patience) return std::nullopt;
  }
}

std::shared_ptr<const Mark> GpuClock::mark() {
  const std::lock_guard lock(mutex_);
  const double now = host_.now();
  if (now < renewal_) return mark_;
  constexpr double patience = 0.25e-3;
  const std::optional<Sample> next = sample(patience);
  // The GPU's queues were full: the previous mark stays in use.
  renewal_ = now + (next ? renewal_seconds : retry_seconds);
  if (!next) return mark_;
  const double by_gpu = seconds_of(next->mark->event, *mark_);
  next->mark->seconds = reconciled(by_gpu, next->mark->seconds, next->uncertainty);
  mark_ = next->mark;
  return mark_;
}

}  // namespace tandem::cuda
