// Where the kernels under test run. The environment's TANDEM_TEST_KERNELS says it: "cpu" (also if
// it says nothing), "cuda", a GPU, or "cuda_on_host", the kernels for GPUs built to run without
// one. On the latter two, memory is the device's own: only kernels can touch it.
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
  // Of the kernels' table.
  [[nodiscard]] virtual std::string kind() const = 0;
  // False: kernels are given the host's memory as it is.
  [[nodiscard]] virtual bool has_own_memory() const { return true; }
  virtual void* allocate(int64_t) { return nullptr; }
  virtual void free(void*) {}
  virtual void upload(const void*, void*, int64_t) {}
  virtual void download(const void*, void*, int64_t) {}
  // function(call), on a stream, and waits for it. `threads` is for a cpu.
  virtual tandem_status run(int32_t threads,
                            const std::function<tandem_status(const tandem_call*)>& function) = 0;
};

// The one that the environment names; throws Error if it names none, or there is no such device.
KernelDevice& kernel_device();
KernelDevice& cpu_device();

inline bool kernels_run_on_a_cpu() {
  return kernel_device().kind() == "cpu";
}

// For the time of one call: what guarded memory a kernel is given, on its device. Guards travel
// with it.
class OnDevice {
 public:
  explicit OnDevice(KernelDevice& device) : device_(&device) {}
  // Brings everything back.
  ~OnDevice();
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

  // The device's address of a GuardedMemory's data; of nullptr nullptr.
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
