// Machines for tests that apply to every backend with its own memory. Each test runs on cpu
// devices, which shows that the test is right, and on logical devices of the first GPU; without a
// GPU the latter is skipped with the reason. Only copies access device memory.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/device/machine.h"
#include "core/plugin/host.h"
#include "core/plugin/registry.h"
#include "tests/device/backends.h"
#include "tests/support/require_gpu.h"

namespace tandem::test {

// Found beside the test program, so that both can be copied to a machine with a GPU.
inline const Registry& all_modules() {
  static const Registry registry = Registry::with_defaults();
  return registry;
}

// The reason why no GPU can be used; "" if one can.
inline std::string no_gpu() {
  return message_of([] {
    int32_t count = 0;
    check(all_modules().backend("cuda").count(&count), "cuda");
  });
}

// For SetUp: skips the test if no GPU can be used, or fails it if one is required.
inline void need_gpu() {
  const std::string reason = no_gpu();
  if (reason.empty()) return;
  if (gpu_is_required()) FAIL() << reason;
  GTEST_SKIP() << reason;
}

inline bool is_gpu(const std::string& devices) {
  return devices.starts_with("cuda");
}

// Logical devices of one GPU do not test copies and events between GPUs.
inline const char* const two_gpus = "cuda:0,1";
inline const char* const four_gpus = "cuda:0,1,2,3";
inline void need_gpus(int wanted) {
  int32_t count = 0;
  check(all_modules().backend("cuda").count(&count), "cuda");
  if (count < wanted) GTEST_SKIP() << "GPUs here: " << count << ", wanted: " << wanted;
}
inline void need_two_gpus() {
  need_gpus(2);
}

// Parameter: the devices, at least two of them.
class OnDevices : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!is_gpu(GetParam())) return;
    need_gpu();
    if (GetParam() == two_gpus && no_gpu().empty()) need_two_gpus();
    if (GetParam() == four_gpus && no_gpu().empty()) need_gpus(4);
  }
  static Machine open(const MachineOptions& options = {}) {
    const DeviceSpec spec = parse_devices(GetParam(), all_modules());
    return {all_modules().backend(spec.kind), spec, options};
  }
};

inline auto cpu_and_gpu() {
  return testing::Values(std::string("cpu:2"), std::string("cuda:0,0"));
}
inline std::string device_name(const testing::TestParamInfo<std::string>& info) {
  if (info.param == two_gpus) return "two_gpus";
  return is_gpu(info.param) ? "cuda" : "cpu";
}

using Floats = std::vector<float>;

// An array in a device's memory.
template <class T = float>
class DeviceArray {
 public:
  DeviceArray(const Machine& machine, int device, std::vector<T> values)
      : memory_(machine, device, TANDEM_MEMORY_DEVICE,
                static_cast<int64_t>(values.size() * sizeof(T))),
        size_(values.size()),
        stream_(machine, device, 0, "array") {
    stream_.copy("upload", device, data(), TANDEM_HOST, values.data(), bytes());
    stream_.synchronize();
  }
  [[nodiscard]] T* data() const { return reinterpret_cast<T*>(memory_.data()); }
  [[nodiscard]] int64_t bytes() const { return static_cast<int64_t>(size_ * sizeof(T)); }
  [[nodiscard]] int64_t count() const { return static_cast<int64_t>(size_); }
  [[nodiscard]] std::vector<T> values() const {
    std::vector<T> result(size_);
    stream_.copy("download", TANDEM_HOST, result.data(), memory_.device(), data(), bytes());
    stream_.synchronize();
    return result;
  }

 private:
  Memory memory_;
  size_t size_;
  Stream stream_;
};

}  // namespace tandem::test
