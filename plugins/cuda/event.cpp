#include "plugins/cuda/event.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "plugins/cuda/capture.h"
#include "plugins/cuda/status.h"

namespace tandem::cuda {

NativeEvent::NativeEvent() {
  check(cudaEventCreate(&event_), "cudaEventCreate");
}

NativeEvent::~NativeEvent() {
  cudaEventDestroy(event_);
  static_cast<void>(cudaGetLastError());
}

bool Recording::issue(Machine& machine, int32_t device, cudaStream_t stream) {
  bool is_recorded = false;
  try {
    is_recorded = record(machine, device, stream);
  } catch (const sdk::Refusal& refusal) {
    machine.failing().keep_whole(refusal.status(), refusal.what());
  }
  is_issued_.store(true, std::memory_order_release);
  is_issued_.notify_all();
  return is_recorded;
}

bool Recording::record(Machine& machine, int32_t device, cudaStream_t stream) {
  machine.make_current(device);
  // Nothing runs in a capture, so nothing can be timed, and the clock must not query the GPU.
  const Capture* const capture = Capture::of(stream);
  mark_ = Capture::current() == nullptr ? machine.clock(device).mark() : nullptr;
  capture_ = capture == nullptr ? 0 : capture->number();
  const cudaError_t error = cudaEventRecord(event_->get(), stream);
  if (error != cudaSuccess) machine.fail(error, "cudaEventRecord", nullptr, ordinal_);
  return error == cudaSuccess;
}

void Recording::require_no_capture() const {
  if (capture_ == 0) return;
  throw sdk::invalid(
      "the event was recorded in a capture: only that capture can wait for it, and it has no time");
}

void Recording::wait_on(Machine& machine, int32_t device, cudaStream_t stream) const {
  Capture* const capture = Capture::current();
  // end_capture reports the failure
  if (capture != nullptr && capture->failure().happened()) return;
  if (capture_ != 0) {
    if (capture == nullptr || capture->number() != capture_) require_no_capture();
    capture->join(stream);
  } else if (Capture::of(stream) != nullptr) {
    throw sdk::invalid("a stream in a capture cannot wait for an event from outside the capture");
  }
  machine.make_current(device);
  const cudaError_t error = cudaStreamWaitEvent(stream, event_->get(), 0);
  if (error != cudaSuccess) {
    machine.fail(error, "cudaStreamWaitEvent", nullptr, machine.ordinal(device));
  }
}

cudaError_t Recording::query() const {
  if (!is_issued()) return cudaErrorNotReady;
  require_no_capture();
  const cudaError_t status = cudaEventQuery(event_->get());
  if (status == cudaErrorNotReady) static_cast<void>(cudaGetLastError());  // it is no error
  return status;
}

double Recording::time() const {
  if (is_issued()) {
    require_no_capture();
    if (mark_ == nullptr) throw sdk::invalid("the event was recorded in a capture");
  }
  const cudaError_t status = query();
  if (status == cudaErrorNotReady) {
    throw sdk::Refusal(TANDEM_TIMEOUT, "the event is not yet reached");
  }
  check(status, "cudaEventQuery");
  return seconds_of(event_->get(), *mark_);
}

std::shared_ptr<const Recording> Event::latest() const {
  const std::lock_guard lock(mutex_);
  return latest_;
}

std::shared_ptr<Recording> Event::renew(int32_t device) {
  machine_.make_current(device);
  const int32_t ordinal = machine_.ordinal(device);
  const std::lock_guard lock(mutex_);
  latest_ = nullptr;
  std::shared_ptr<const NativeEvent>& event = events_[ordinal];
  // Whoever still has the last record waits for that one.
  if (event == nullptr || event.use_count() > 1) event = std::make_shared<NativeEvent>();
  latest_ = std::make_shared<Recording>(ordinal, event);
  return latest_;
}

void Event::record(int32_t device, cudaStream_t stream) {
  if (renew(device)->issue(machine_, device, stream)) return;
  // An event of an earlier capture must not be taken for one of this capture.
  const std::lock_guard lock(mutex_);
  if (Capture::current() != nullptr) latest_ = nullptr;
}

bool Event::wait_for(double seconds) const {
  using Clock = std::chrono::steady_clock;
  constexpr int first_asks = 20;
  constexpr std::chrono::microseconds shortest_sleep(10), longest_sleep(200);
  const std::shared_ptr<const Recording> recording = latest();
  if (recording == nullptr) return true;
  const auto begin = Clock::now();
  auto sleep = shortest_sleep;
  for (int ask = 0;; ++ask) {
    const cudaError_t status = recording->query();
    if (status == cudaSuccess) return true;
    if (status != cudaErrorNotReady) {
      machine_.fail(status, "cudaEventQuery", nullptr, recording->ordinal());
      return true;
    }
    const double waited = std::chrono::duration<double>(Clock::now() - begin).count();
    if (seconds >= 0 && waited >= seconds) return false;
    if (ask < first_asks) continue;
    std::this_thread::sleep_for(sleep);
    sleep = std::min(2 * sleep, longest_sleep);
  }
}

double Event::time() const {
  const std::shared_ptr<const Recording> recording = latest();
  if (recording == nullptr) throw sdk::invalid("the event was never recorded");
  return recording->time();
}

}  // namespace tandem::cuda
