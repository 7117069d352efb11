#include "tests/support/kernel_device.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>

#include "core/base/error.h"
#include "tests/cuda_on_host/test_stream.h"
#include "tests/support/folders.h"
#include "tests/support/layer_test.h"
#include "tests/support/require_gpu.h"

namespace tandem::test {
namespace {

class CpuDevice : public KernelDevice {
 public:
  [[nodiscard]] std::string kind() const override { return "cpu"; }
  [[nodiscard]] bool has_own_memory() const override { return false; }
  tandem_status run(int32_t threads,
                    const std::function<tandem_status(const tandem_call*)>& function) override {
    const tandem_call call{sizeof(tandem_call), 0, threads, nullptr, nullptr, nullptr};
    return function(&call);
  }
};

// Memory that can be accessed only while the body of a kernel runs.
class CudaOnHostDevice : public KernelDevice {
 public:
  [[nodiscard]] std::string kind() const override { return "cuda_on_host"; }
  void* allocate(int64_t bytes) override {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t size = (static_cast<size_t>(bytes) + page - 1) / page * page;
    void* pages = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) throw error("mmap of {} bytes failed", size);
    sizes_[pages] = size;
    return pages;
  }
  void free(void* address) override {
    munmap(address, sizes_.at(address));
    sizes_.erase(address);
  }
  void upload(const void* host, void* device, int64_t bytes) override {
    mprotect(device, sizes_.at(device), PROT_READ | PROT_WRITE);
    std::memcpy(device, host, static_cast<size_t>(bytes));
    mprotect(device, sizes_.at(device), PROT_NONE);
  }
  void download(const void* device, void* host, int64_t bytes) override {
    auto* pages = const_cast<void*>(device);
    mprotect(pages, sizes_.at(pages), PROT_READ);
    std::memcpy(host, device, static_cast<size_t>(bytes));
    mprotect(pages, sizes_.at(pages), PROT_NONE);
  }
  tandem_status run(int32_t, const std::function<tandem_status(const tandem_call*)>& f) override {
    cuda::TestStream stream{[](void* self) { protect(self, PROT_READ | PROT_WRITE); },
                            [](void* self) { protect(self, PROT_NONE); }, this};
    const tandem_call call{sizeof(tandem_call), 0, 0, &stream, nullptr, nullptr};
    return f(&call);
  }

 private:
  static void protect(void* self, int access) {
    for (const auto& [pages, size] : static_cast<CudaOnHostDevice*>(self)->sizes_) {
      mprotect(pages, size, access);
    }
  }
  std::map<void*, size_t> sizes_;
};

// One GPU, through the backend's own table. A failure throws Error with the backend's reason.
class CudaDevice : public KernelDevice {
 public:
  CudaDevice() : backend_(layer_registry().backend("cuda")) {
    const int32_t first = 0;
    tandem_machine_options options{};
    options.struct_size = sizeof options;
    options.device_count = 1;
    options.ordinals = &first;
    check(backend_.open(&options, &machine_), "cuda");
    check(backend_.create_stream(machine_, 0, 1, "compute", &stream_), "cuda");
    check(backend_.create_event(machine_, &event_), "cuda");
    // In a run, kernels are prepared by works of this kind. It makes the stream create its library
    // handles.
    submit(TANDEM_WORK_HOST, [](const tandem_call*) { return tandem_status{TANDEM_OK}; });
  }
  [[nodiscard]] std::string kind() const override { return "cuda"; }
  void* allocate(int64_t bytes) override {
    void* address = nullptr;
    check(backend_.allocate(machine_, 0, TANDEM_MEMORY_DEVICE, bytes, &address), "cuda");
    return address;
  }
  void free(void* address) override { backend_.free(machine_, 0, TANDEM_MEMORY_DEVICE, address); }
  void upload(const void* host, void* device, int64_t bytes) override {
    check(backend_.copy(stream_, "upload", 0, device, TANDEM_HOST, host, bytes), "cuda");
    wait();
  }
  void download(const void* device, void* host, int64_t bytes) override {
    check(backend_.copy(stream_, "download", TANDEM_HOST, host, 0, device, bytes), "cuda");
    wait();
  }
  tandem_status run(int32_t, const std::function<tandem_status(const tandem_call*)>& f) override {
    return submit(TANDEM_WORK_COMPUTE, f);
  }

 private:
  using Function = std::function<tandem_status(const tandem_call*)>;
  // If the function refuses, this must not fail the machine, which later tests use.
  struct Work {
    const Function& function;
    tandem_status status = TANDEM_OK;
    std::string reason{};
  };
  tandem_status submit(int32_t kind, const Function& function) {
    Work kept{function};
    tandem_work work{};
    work.struct_size = sizeof work;
    work.kind = kind;
    work.label = "tested";
    work.predicted_seconds = -1;
    work.run = [](void* context, const tandem_call* call) {
      auto& kept = *static_cast<Work*>(context);
      kept.status = kept.function(call);
      kept.reason = take_reason();
      return tandem_status{TANDEM_OK};
    };
    work.context = &kept;
    check(backend_.submit(stream_, &work), "cuda");
    wait();
    host_table().explain(kept.reason.c_str());
    return kept.status;
  }
  void wait() {
    check(backend_.record(stream_, event_), "cuda");
    check(backend_.synchronize(event_, -1), "cuda");
  }

  const tandem_backend& backend_;
  tandem_machine* machine_ = nullptr;
  tandem_stream* stream_ = nullptr;
  tandem_event* event_ = nullptr;
};

std::string device_of_the_environment() {
  const char* name = std::getenv("TANDEM_TEST_KERNELS");
  return name == nullptr ? "cpu" : name;
}

std::unique_ptr<KernelDevice> make_device() {
  const std::string name = device_of_the_environment();
  if (name == "cpu") return std::make_unique<CpuDevice>();
  if (name == "cuda_on_host") return std::make_unique<CudaOnHostDevice>();
  if (name == "cuda") return std::make_unique<CudaDevice>();
  throw error("TANDEM_TEST_KERNELS is '{}', but must be cpu, cuda or cuda_on_host", name);
}

// Without a GPU, all tests are skipped, or fail if one is required, with the reason.
class NeedsItsDevice : public testing::Environment {
 public:
  void SetUp() override {
    try {
      static_cast<void>(kernel_device());
    } catch (const Error& reason) {
      if (device_of_the_environment() != "cuda") throw;
      if (gpu_is_required()) FAIL() << reason.what();
      GTEST_SKIP() << reason.what();
    }
  }
};
[[maybe_unused]] const testing::Environment* const needs_its_device =
    testing::AddGlobalTestEnvironment(new NeedsItsDevice);

}  // namespace

KernelDevice& kernel_device() {
  static KernelDevice* const device = make_device().release();  // lives longer than every test
  return *device;
}

KernelDevice& cpu_device() {
  static CpuDevice device;
  return device;
}

const Registry& layer_registry() {
  static const Registry registry = [] {
    Registry result = Registry::with_defaults();  // beside the program, wherever that was copied to
    if (device_of_the_environment() == "cuda_on_host") {
      result.scan(test::build_folder() / "lib/tandem/cuda_on_host");
    }
    return result;
  }();
  return registry;
}

OnDevice::~OnDevice() {
  for (const Copy& copy : copies_) {
    try {
      device_->download(copy.device, copy.host, copy.bytes);
    } catch (const std::exception& failure) {
      ADD_FAILURE() << failure.what();
    }
    device_->free(copy.device);
  }
}

void* OnDevice::at(const void* data) {
  if (data == nullptr || !device_->has_own_memory()) return const_cast<void*>(data);
  for (const Copy& copy : copies_) {
    if (copy.data == data) return copy.device + GuardedMemory::guard;
  }
  const int64_t bytes = GuardedMemory::bytes_of(data) + 2 * int64_t{GuardedMemory::guard};
  auto* host = static_cast<unsigned char*>(const_cast<void*>(data)) - GuardedMemory::guard;
  auto* memory = static_cast<unsigned char*>(device_->allocate(bytes));
  device_->upload(host, memory, bytes);
  copies_.push_back({data, host, memory, bytes});
  return memory + GuardedMemory::guard;
}

std::vector<void*> OnDevice::at(const std::vector<void*>& data) {
  std::vector<void*> result;
  for (const void* one : data) result.push_back(at(one));
  return result;
}

}  // namespace tandem::test
