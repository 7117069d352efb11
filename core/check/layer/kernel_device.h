// The device of the kernels under test: how a call of a kernel runs, and where its memory is.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/guarded_memory.h"
#include "core/device/machine.h"
#include "core/device/parse.h"
#include "core/plugin/registry.h"
#include "plugins/abi.h"

namespace tandem::checker {

class KernelDevice {
 public:
  using Work = std::function<tandem_status(const tandem_call*)>;
  virtual ~KernelDevice() = default;
  // The device_kind in the kernels' table.
  [[nodiscard]] virtual std::string kind() const = 0;
  // False: kernels get the host's memory.
  [[nodiscard]] virtual bool has_own_memory() const { return true; }
  virtual void* allocate(int64_t) { return nullptr; }
  virtual void free(void*) {}
  virtual void upload(const void*, void*, int64_t) {}
  virtual void download(const void*, void*, int64_t) {}
  // Runs work(call) on a stream and waits for it. `threads` is for a cpu.
  virtual tandem_status run(int32_t threads, const Work& work) = 0;
  // The time that all calls of run() took on the device.
  [[nodiscard]] virtual double seconds() const { return 0; }
  // The time of one copy between two arrays of so many bytes on the device; 0: not known.
  virtual double seconds_of_copy(int32_t, int64_t) { return 0; }
};

// A device of a backend, through the backend's own table: the work runs on a stream's thread. On
// the cpu there is a stream for each number of threads. A failure throws Error with the backend's
// reason.
class BackendDevice : public KernelDevice {
 public:
  explicit BackendDevice(const tandem_backend& backend);
  ~BackendDevice() override;
  BackendDevice(const BackendDevice&) = delete;
  BackendDevice& operator=(const BackendDevice&) = delete;

  [[nodiscard]] std::string kind() const override { return backend_.kind; }
  [[nodiscard]] bool has_own_memory() const override { return !is_host_addressable(backend_); }
  void* allocate(int64_t bytes) override;
  void free(void* address) override;
  void upload(const void* host, void* device, int64_t bytes) override;
  void download(const void* device, void* host, int64_t bytes) override;
  tandem_status run(int32_t threads, const Work& work) override;
  [[nodiscard]] double seconds() const override { return seconds_; }
  double seconds_of_copy(int32_t threads, int64_t bytes) override;

  // From now on run() captures what the work issues into a graph and launches that, until it is
  // called with false. The status is that of the work, or else of the capture.
  void capture_runs(bool on) { is_capturing_ = on; }

 private:
  struct Rig;
  Rig& rig(int32_t threads);
  const tandem_backend& backend_;
  std::map<int32_t, std::unique_ptr<Rig>> rigs_;  // by threads; 0 where they are not counted
  double seconds_ = 0;
  bool is_capturing_ = false;
};

// The first device of each kind, opened when it is first asked for.
class OpenDevices {
 public:
  explicit OpenDevices(const Registry& registry) : registry_(registry) {}
  // Throws Error with the reason why there is none, the same each time.
  BackendDevice& of(const std::string& kind);
  // So many more devices, which run at the same time; each has a table and threads of its own.
  std::vector<BackendDevice*> more_of(const std::string& kind, size_t count);
  // Of a device that may have failed: of() opens it again.
  void close(const std::string& kind) { devices_.erase(kind); }

 private:
  const Registry& registry_;
  std::map<std::string, std::unique_ptr<BackendDevice>> devices_;
  std::map<std::string, std::vector<std::unique_ptr<BackendDevice>>> more_;
  std::map<std::string, std::string> refusals_;
};

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

}  // namespace tandem::checker
