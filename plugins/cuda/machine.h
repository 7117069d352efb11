// A machine of GPUs, with what its streams and events share. A GPU may be several of its devices
// (cuda:0,0). Opening it enables access between the memories of GPUs where this is possible.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plugins/cuda/clock.h"
#include "plugins/cuda/gpu_links.h"
#include "plugins/first_failure.h"

namespace tandem::cuda {

// Throws Refusal for options that are invalid for this backend or that name a GPU that is not among
// `gpus`. Returns the GPU of each device.
[[nodiscard]] std::vector<int32_t> require_options(const tandem_machine_options& options,
                                                   int32_t gpus);

class Machine {
 public:
  // Throws Refusal.
  explicit Machine(const tandem_machine_options& options);

  [[nodiscard]] int32_t device_count() const { return static_cast<int32_t>(ordinals_.size()); }
  // The GPU of this device. Throws Refusal unless the device exists.
  [[nodiscard]] int32_t ordinal(int32_t device) const;
  // Makes the device's GPU the current one of the calling thread. Throws Refusal.
  void make_current(int32_t device) const;
  [[nodiscard]] GpuClock& clock(int32_t device) { return *clocks_.at(ordinal(device)); }
  [[nodiscard]] sdk::FirstFailure& failure() { return failure_; }
  // Where failures of this thread are kept: in its capture, else in the machine.
  [[nodiscard]] sdk::FirstFailure& failing();
  // From now on a failure may be that of a kernel in a graph, which CUDA does not identify.
  void note_launch() { has_launched_ = true; }
  [[nodiscard]] uint32_t next_stream_number() { return stream_count_++; }
  [[nodiscard]] uint64_t delay_seed() const { return delay_seed_; }
  [[nodiscard]] double delay_seconds() const { return delay_seconds_; }
  // A device's memory is what is free now, divided by the devices that share its GPU.
  [[nodiscard]] tandem_device_info device_info(int32_t device) const;

  // What the hardware reports about the links between the devices; NULL for one device. The machine
  // owns it.
  [[nodiscard]] const tandem_topology* topology();

  // Keeps CUDA's error as failing(). `task` is the failing task, or NULL if it is an unknown one
  // that was issued before.
  void fail(cudaError_t error, const char* call, const char* task, int32_t ordinal);

  // At least 256-byte aligned; `memory` as in abi/backends.h. Throws Refusal.
  [[nodiscard]] void* allocate(int32_t device, int32_t memory, int64_t bytes) const;
  void release(int32_t device, int32_t memory, void* address) const;

 private:
  std::vector<int32_t> ordinals_;
  uint64_t delay_seed_ = 0;
  double delay_seconds_ = 0;
  HostClock host_clock_;
  std::map<int32_t, std::unique_ptr<GpuClock>> clocks_;  // by ordinal
  sdk::FirstFailure failure_;
  std::atomic<uint32_t> stream_count_{0};
  std::optional<LinkMap> links_;
  tandem_topology topology_{};  // of links_
  std::atomic<bool> has_launched_{false};
};

}  // namespace tandem::cuda
