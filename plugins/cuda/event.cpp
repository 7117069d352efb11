#include "plugins/cuda/event.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "plugins/cuda/capture.h"
#include "plugins/cuda/status.h"

namespace tandem::cuda {

Event::~Event() {
  for (const auto& [ordinal, event] : events_) cudaEventDestroy(event);
  static_cast<void>(cudaGetLastError());
}

Event::Record Event::latest() const {
  const std::lock_guard lock(mutex_);
  return latest_;
}

void Event::require_no_capture(const Record& record) {
  if (record.capture == 0) return;
  throw sdk::invalid(
      "the event was recorded in a capture: only that capture can wait for it, and it has no time");
}

void Event::record(int32_t device, cudaStream_t stream) {
  machine_.make_current(device);
  const int32_t ordinal = machine_.ordinal(device);
  // Nothing runs in a capture, so nothing can be timed, and the clock must not query the GPU.
  const Capture* const capture = Capture::of(stream);
  std::shared_ptr<const Mark> mark;
  if (Capture::current() == nullptr) mark = machine_.clock(device).mark();
  const std::lock_guard lock(mutex_);
  cudaEvent_t& event = events_[ordinal];
  if (event == nullptr) check(cudaEventCreate(&event), "cudaEventCreate");
  const cudaError_t error = cudaEventRecord(event, stream);
  if (error != cudaSuccess) {
    // An event of an earlier capture must not be taken for one of this capture.
    if (Capture::current() != nullptr) latest_ = {};
    return machine_.fail(error, "cudaEventRecord", nullptr, ordinal);
  }
  latest_ = {event, ordinal, std::move(mark), capture == nullptr ? 0 : capture->number()};
}

void Event::wait_on(int32_t device, cudaStream_t stream) {
  const Record record = latest();
  if (record.event == nullptr) return;
  Capture* const capture = Capture::current();
  // end_capture reports the failure
  if (capture != nullptr && capture->failure().happened()) return;
  if (record.capture != 0) {
    if (capture == nullptr || capture->number() != record.capture) require_no_capture(record);
    capture->join(stream);
  } else if (Capture::of(stream) != nullptr) {
    throw sdk::invalid("a stream in a capture cannot wait for an event from outside the capture");
  }
  machine_.make_current(device);
  const cudaError_t error = cudaStreamWaitEvent(stream, record.event, 0);
  if (error != cudaSuccess) {
    machine_.fail(error, "cudaStreamWaitEvent", nullptr, machine_.ordinal(device));
  }
}

bool Event::wait_for(double seconds) {
  using Clock = std::chrono::steady_clock;
  constexpr int first_asks = 20;
  constexpr std::chrono::microseconds shortest_sleep(10), longest_sleep(200);
  const Record record = latest();
  if (record.event == nullptr) return true;
  require_no_capture(record);
  const auto begin = Clock::now();
  auto sleep = shortest_sleep;
  for (int ask = 0;; ++ask) {
    const cudaError_t status = cudaEventQuery(record.event);
    if (status == cudaSuccess) return true;
    if (status != cudaErrorNotReady) {
      machine_.fail(status, "cudaEventQuery", nullptr, record.ordinal);
      return true;
    }
    static_cast<void>(cudaGetLastError());  // "not ready" is not an error
    const double waited = std::chrono::duration<double>(Clock::now() - begin).count();
    if (seconds >= 0 && waited >= seconds) return false;
    if (ask < first_asks) continue;
    std::this_thread::sleep_for(sleep);
    sleep = std::min(2 * sleep, longest_sleep);
  }
}

double Event::time() const {
  const Record record = latest();
  if (record.event == nullptr) throw sdk::invalid("the event was never recorded");
  require_no_capture(record);
  if (record.mark == nullptr) throw sdk::invalid("the event was recorded in a capture");
  const cudaError_t status = cudaEventQuery(record.event);
  if (status == cudaErrorNotReady) {
    static_cast<void>(cudaGetLastError());
    throw sdk::Refusal(TANDEM_TIMEOUT, "the event is not yet reached");
  }
  check(status, "cudaEventQuery");
  return seconds_of(record.event, *record.mark);
}

}  // namespace tandem::cuda
