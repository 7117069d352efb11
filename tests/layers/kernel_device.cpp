#include "tests/support/layer_test.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>

#include "core/base/error.h"
#include "tests/cuda_on_host/test_stream.h"
#include "tests/support/folders.h"
#include "tests/support/require_gpu.h"

namespace tandem::test {
namespace {

// This thread of the cpu. A team of a kernel has as many threads as OpenMP decides.
class ThisThread : public KernelDevice {
 public:
  [[nodiscard]] std::string kind() const override { return default_kind; }
  [[nodiscard]] bool has_own_memory() const override { return false; }
  tandem_status run(int32_t threads, const Work& work) override {
    const tandem_call call{sizeof(tandem_call), 0, threads, nullptr, nullptr, nullptr};
    return work(&call);
  }
};

// Memory that can be accessed only while the body of a kernel runs. The environment's
// TANDEM_TEST_OFFSET, 8 for example, is where it begins behind an aligned address.
class CudaOnHostDevice : public KernelDevice {
 public:
  [[nodiscard]] std::string kind() const override { return "cuda_on_host"; }
  void* allocate(int64_t bytes) override {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t size = (static_cast<size_t>(bytes) + offset_ + page - 1) / page * page;
    void* pages = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) throw error("mmap of {} bytes failed", size);
    sizes_[pages] = size;
    return static_cast<char*>(pages) + offset_;
  }
  void free(void* address) override {
    void* pages = pages_of(address);
    munmap(pages, sizes_.at(pages));
    sizes_.erase(pages);
  }
  void upload(const void* host, void* device, int64_t bytes) override {
    void* pages = pages_of(device);
    mprotect(pages, sizes_.at(pages), PROT_READ | PROT_WRITE);
    std::memcpy(device, host, static_cast<size_t>(bytes));
    mprotect(pages, sizes_.at(pages), PROT_NONE);
  }
  void download(const void* device, void* host, int64_t bytes) override {
    void* pages = pages_of(device);
    mprotect(pages, sizes_.at(pages), PROT_READ);
    std::memcpy(host, device, static_cast<size_t>(bytes));
    mprotect(pages, sizes_.at(pages), PROT_NONE);
  }
  tandem_status run(int32_t, const Work& work) override {
    cuda::TestStream stream{[](void* self) { protect(self, PROT_READ | PROT_WRITE); },
                            [](void* self) { protect(self, PROT_NONE); }, this};
    const tandem_call call{sizeof(tandem_call), 0, 0, &stream, nullptr, nullptr};
    return work(&call);
  }

 private:
  static size_t offset_of_the_environment() {
    const char* offset = std::getenv("TANDEM_TEST_OFFSET");
    return offset == nullptr ? 0 : static_cast<size_t>(std::atoi(offset));
  }
  [[nodiscard]] void* pages_of(const void* address) const {
    return const_cast<char*>(static_cast<const char*>(address)) - offset_;
  }
  static void protect(void* self, int access) {
    for (const auto& [pages, size] : static_cast<CudaOnHostDevice*>(self)->sizes_) {
      mprotect(pages, size, access);
    }
  }
  const size_t offset_ = offset_of_the_environment();
  std::map<void*, size_t> sizes_;
};

std::string device_of_the_environment() {
  const char* name = std::getenv("TANDEM_TEST_KERNELS");
  return name == nullptr ? "cpu" : name;
}

std::unique_ptr<KernelDevice> make_device() {
  const std::string name = device_of_the_environment();
  if (name == "cpu") return std::make_unique<ThisThread>();
  if (name == "cuda_on_host") return std::make_unique<CudaOnHostDevice>();
  if (name == "cuda") return std::make_unique<BackendDevice>(layer_registry().backend("cuda"));
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
  static ThisThread device;
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

}  // namespace tandem::test
