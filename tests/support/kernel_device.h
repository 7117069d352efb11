// The device of the kernels under test. The environment's TANDEM_TEST_KERNELS names it: "cpu" (the
// default), "cuda" (a GPU), or "cuda_on_host" (the kernels for GPUs, built to run without one). The
// latter two have their own memory, which only kernels can access.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "plugins/abi.h"
#include "tests/support/guarded_memory.h"

namespace tandem::test {

class KernelDevice {
 public:
  virtual ~KernelDevice() = default;
  // The device_kind in the kernels' table.
  [[nodiscard]] virtual std::string kind() const = 0;
  // False: kernels get the host's memory.
  [[nodiscard]] virtual bool has_own_memory() const { return true; }
  virtual void* allocate(int64_t) { return nullptr; }
  virtual void free(void*) {}
  virtual void upload(const void*, void*, int64_t) {}
  virtual void download(const void*, void*, int64_t) {}
  // Runs function(call) on a stream and waits for it. `threads` is for a cpu.
  virtual tandem_status run(int32_t threads,
                            const std::function<tandem_status(const tandem_call*)>& function) = 0;
};

// The device that the environment names. Throws Error if the name is unknown or there is no such
// device.
KernelDevice& kernel_device();
KernelDevice& cpu_device();

inline bool kernels_run_on_a_cpu() {
  return kernel_device().kind() == "cpu";
}

// For one call: copies the guarded memory of a kernel to its device, guards included.
class OnDevice {
 public:
  explicit OnDevice(KernelDevice& device) : device_(&device) {}
  // Copies everything back.
  ~OnDevice();
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

  // The device address of a GuardedMemory's data; nullptr for nullptr.
  void* at(const void* data);
  std::vector<void*> at(const std::vector<void*>& data);

 private:
  struct Copy {
    const void* data;  // on the host
    unsigned char* host;
    unsigned char* device;
    int64_t bytes;
  };
  KernelDevice* device_;
  std::vector<Copy> copies_;
};

}  // namespace tandem::test
