// An event: a CUDA event on the GPU of the stream on which it is first recorded, timed relative to
// that GPU's mark. If it is recorded again, earlier waits still refer to the earlier record. An
// event recorded in a capture can be waited for only in that capture and cannot be queried.
#pragma once

#include <cuda_runtime_api.h>

#include <map>
#include <memory>
#include <mutex>

#include "plugins/cuda/machine.h"

namespace tandem::cuda {

class Event {
 public:
  explicit Event(Machine& machine) : machine_(machine) {}
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  [[nodiscard]] Machine& machine() const { return machine_; }

  // Records it on a stream of `device`. A failure of CUDA becomes the machine's failure.
  void record(int32_t device, cudaStream_t stream);
  // Makes a stream wait for the latest record, if there is one. Throws Refusal if the wait crosses
  // the boundary of a capture.
  void wait_on(int32_t device, cudaStream_t stream);
  // False if the latest record is not reached within `seconds`; a negative number: waits without
  // limit. True if there is none, and once the GPU has failed. Throws Refusal for an event of a
  // capture.
  [[nodiscard]] bool wait_for(double seconds);
  // Throws Refusal if it was never recorded, or is not reached yet.
  [[nodiscard]] double time() const;

 private:
  struct Record {
    cudaEvent_t event = nullptr;  // null: never recorded
    int32_t ordinal = -1;
    std::shared_ptr<const Mark> mark;  // null: recorded in a capture
    uint64_t capture = 0;              // number of the capture; 0: none
  };
  static void require_no_capture(const Record& record);
  [[nodiscard]] Record latest() const;

  Machine& machine_;
  mutable std::mutex mutex_;
  std::map<int32_t, cudaEvent_t> events_;  // by ordinal
  Record latest_;
};

}  // namespace tandem::cuda
