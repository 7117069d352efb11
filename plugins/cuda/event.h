// An event: a CUDA event on the GPU of the stream on which it is first recorded, timed relative to
// that GPU's mark. If it is recorded again, earlier waits still refer to the earlier record. An
// event recorded in a capture can be waited for only in that capture and cannot be queried.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "plugins/cuda/machine.h"

namespace tandem::cuda {

// CUDA's event, on the GPU that was current.
class NativeEvent {
 public:
  NativeEvent();  // throws Refusal
  ~NativeEvent();
  NativeEvent(const NativeEvent&) = delete;
  NativeEvent& operator=(const NativeEvent&) = delete;

  [[nodiscard]] cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

// One record of an event, which a stream may issue later than it was asked to (IssueQueue).
class Recording {
 public:
  Recording(int32_t ordinal, std::shared_ptr<const NativeEvent> event)
      : ordinal_(ordinal), event_(std::move(event)) {}

  [[nodiscard]] int32_t ordinal() const { return ordinal_; }
  [[nodiscard]] bool is_issued() const { return is_issued_.load(std::memory_order_acquire); }
  void await_issue() const { is_issued_.wait(false, std::memory_order_acquire); }

  // Records on a stream of `device`. False after a failure of CUDA, which becomes the machine's; it
  // then counts as issued, so that nobody waits for ever. Throws nothing.
  bool issue(Machine& machine, int32_t device, cudaStream_t stream);
  // Makes a stream wait for it. Throws Refusal if the wait crosses the boundary of a capture.
  void wait_on(Machine& machine, int32_t device, cudaStream_t stream) const;
  // Of the GPU; cudaErrorNotReady also before it is issued. Throws Refusal in case of a capture.
  [[nodiscard]] cudaError_t query() const;
  // Throws Refusal.
  [[nodiscard]] double time() const;

 private:
  bool record(Machine& machine, int32_t device, cudaStream_t stream);
  void require_no_capture() const;

  const int32_t ordinal_;
  const std::shared_ptr<const NativeEvent> event_;
  std::shared_ptr<const Mark> mark_;  // null: recorded in a capture
  uint64_t capture_ = 0;              // number of the capture; 0: none
  std::atomic<bool> is_issued_{false};
};

class Event {
 public:
  explicit Event(Machine& machine) : machine_(machine) {}
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  [[nodiscard]] Machine& machine() const { return machine_; }

  // The record that waits refer to from now on, to be issued on a stream of `device`. Throws
  // Refusal.
  [[nodiscard]] std::shared_ptr<Recording> renew(int32_t device);
  // Records it on a stream of `device`. A failure of CUDA becomes the machine's failure.
  void record(int32_t device, cudaStream_t stream);
  // Null: it was never recorded.
  [[nodiscard]] std::shared_ptr<const Recording> latest() const;
  // False if the latest record is not reached within `seconds`; a negative number: waits without
  // limit. True if there is none, and once the GPU has failed. Throws Refusal for an event of a
  // capture.
  [[nodiscard]] bool wait_for(double seconds) const;
  // Throws Refusal if it was never recorded, or is not reached yet.
  [[nodiscard]] double time() const;

 private:
  Machine& machine_;
  mutable std::mutex mutex_;
  std::map<int32_t, std::shared_ptr<const NativeEvent>> events_;  // by ordinal
  std::shared_ptr<Recording> latest_;
};

}  // namespace tandem::cuda
