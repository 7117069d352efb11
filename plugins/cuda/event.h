// An event: CUDA's, made on the GPU on whose stream it is first recorded, timed against that GPU's
// mark. Recording it again leaves those who wait for the earlier record waiting for that one. One
// that was recorded in a capture is waited for in it only, and nobody may ask for it.
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

  // Records it on a stream of `device`; what CUDA refuses becomes the machine's failure.
  void record(int32_t device, cudaStream_t stream);
  // Makes a stream wait for the latest record, if there is one. Throws Refusal if that crosses the
  // boundary of a capture.
  void wait_on(int32_t device, cudaStream_t stream);
  // False if the latest record is not reached within `seconds`; below 0: waits for ever. True if
  // there is none, and once the GPU has failed. Throws Refusal if it is of a capture.
  [[nodiscard]] bool wait_for(double seconds);
  // Throws Refusal if it was never recorded, or not reached yet.
  [[nodiscard]] double time() const;

 private:
  struct Record {
    cudaEvent_t event = nullptr;  // null: never recorded
    int32_t ordinal = -1;
    std::shared_ptr<const Mark> mark;  // null: its thread captured
    uint64_t capture = 0;              // its number; 0: of none
  };
  static void require_no_capture(const Record& record);
  [[nodiscard]] Record latest() const;

  Machine& machine_;
  mutable std::mutex mutex_;
  std::map<int32_t, cudaEvent_t> events_;  // by ordinal
  Record latest_;
};

}  // namespace tandem::cuda
