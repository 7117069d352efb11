#include "plugins/cuda/machine.h"

#include <algorithm>
#include <cstring>

#include "plugins/cuda/capture.h"
#include "plugins/cuda/hardware.h"
#include "plugins/cuda/link_facts.h"
#include "plugins/cuda/status.h"
#include "plugins/machine_options.h"

namespace tandem::cuda {

namespace {

constexpr int oldest_major = 7, oldest_minor = 5;
// The GPU memory that cuBLAS, cuDNN and kernels take when they are loaded later.
constexpr int64_t libraries_bytes = int64_t{512} << 20;

std::string mebibytes(int64_t bytes) {
  return sdk::text(bytes >> 20, " MiB");
}

void require_capability(int32_t ordinal) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, ordinal), "cudaGetDeviceProperties");
  const bool is_too_old = properties.major < oldest_major ||
                          (properties.major == oldest_major && properties.minor < oldest_minor);
  if (!is_too_old) return;
  throw sdk::unsupported("cuda:", ordinal, " (", properties.name, ") has compute capability ",
                         properties.major, ".", properties.minor, "; ", oldest_major, ".",
                         oldest_minor, " (Turing) or newer is needed");
}

// Without peer access, copies between two GPUs go through CUDA's own pinned host memory.
void enable_peer_access(int32_t ordinal, int32_t peer) {
  int can = 0;
  check(cudaDeviceCanAccessPeer(&can, ordinal, peer), "cudaDeviceCanAccessPeer");
  if (can == 0) return;
  check(cudaSetDevice(ordinal), "cudaSetDevice");
  const cudaError_t error = cudaDeviceEnablePeerAccess(peer, 0);
  if (error == cudaErrorPeerAccessAlreadyEnabled) {
    static_cast<void>(cudaGetLastError());  // enabled by a machine that was open before
    return;
  }
  check(error, "cudaDeviceEnablePeerAccess");
}

}  // namespace

std::vector<int32_t> require_options(const tandem_machine_options& given, int32_t gpus) {
  const tandem_machine_options options = sdk::checked(given, "cuda");
  if (options.paced != 0) {
    throw sdk::unsupported("paced mode runs on cpu devices only: use cpu:", options.device_count,
                           " with the costs measured on cuda, or sim:", options.device_count);
  }
  if (options.link_bandwidth != 0 || options.link_latency != 0) {
    throw sdk::unsupported("the links between cuda devices cannot be slowed: use cpu:",
                           options.device_count, " or sim:", options.device_count, " for that");
  }
  std::vector<int32_t> ordinals;
  for (int32_t i = 0; i < options.device_count; ++i) {
    const int32_t ordinal = options.ordinals == nullptr ? i : options.ordinals[i];
    if (ordinal < 0 || ordinal >= gpus) {
      throw sdk::invalid("there is no cuda:", ordinal, ": this machine has ", gpus,
                         gpus == 1 ? " GPU, cuda:0" : sdk::text(" GPUs, cuda:0 to cuda:", gpus - 1),
                         "; a GPU can be several devices, as in cuda:0,0");
    }
    ordinals.push_back(ordinal);
  }
  return ordinals;
}

Machine::Machine(const tandem_machine_options& given) {
  const tandem_machine_options options = sdk::checked(given, "cuda");
  ordinals_ = require_options(options, gpu_count());
  delay_seed_ = options.delay_seed;
  delay_seconds_ = options.delay_seconds;
  for (const int32_t ordinal : ordinals_) {
    if (clocks_.contains(ordinal)) continue;
    require_capability(ordinal);
    clocks_[ordinal] = std::make_unique<GpuClock>(ordinal, host_clock_);
  }
  for (const auto& [ordinal, clock] : clocks_) {
    for (const auto& [peer, peer_clock] : clocks_) {
      if (peer != ordinal) enable_peer_access(ordinal, peer);
    }
  }
}

int32_t Machine::ordinal(int32_t device) const {
  if (device < 0 || device >= device_count()) {
    throw sdk::invalid("device ", device, " of a machine of ", device_count());
  }
  return ordinals_[static_cast<size_t>(device)];
}

void Machine::make_current(int32_t device) const {
  check(cudaSetDevice(ordinal(device)), "cudaSetDevice");
}

tandem_device_info Machine::device_info(int32_t device) const {
  tandem_device_info info = describe_gpu(ordinal(device));
  const auto sharers = std::count(ordinals_.begin(), ordinals_.end(), ordinal(device));
  info.available_bytes =
      std::max<int64_t>(info.available_bytes - libraries_bytes, 0) / static_cast<int64_t>(sharers);
  return info;
}

const tandem_topology* Machine::topology() {
  if (device_count() < 2) return nullptr;
  if (!links_) {
    links_ = map_links(find_link_facts(ordinals_));
    topology_ = links_->table();
  }
  return &topology_;
}

sdk::FirstFailure& Machine::failing() {
  Capture* const capture = Capture::current();
  return capture != nullptr ? capture->failure() : failure_;
}

void Machine::fail(cudaError_t error, const char* call, const char* task, int32_t ordinal) {
  static_cast<void>(cudaGetLastError());
  sdk::FirstFailure& failure = failing();
  if (failure.happened()) return;
  const std::string text = text_of(error, call, sdk::text("cuda:", ordinal));
  if (task != nullptr) {
    failure.keep(status_of(error), task, text);
  } else if (Capture::current() != nullptr) {
    failure.keep_whole(status_of(error), text);  // nothing runs in a capture
  } else {
    failure.keep_whole(status_of(error),
                       sdk::text("a kernel or copy that was issued earlier failed: ", text,
                                 "; run again with CUDA_LAUNCH_BLOCKING=1 in the environment",
                                 has_launched_ ? ", and with --graphs off," : "", " to see which"));
  }
}

void* Machine::allocate(int32_t device, int32_t memory, int64_t bytes) const {
  if (bytes < 0) throw sdk::invalid("memory of ", bytes, " bytes");
  make_current(device);
  const size_t size = static_cast<size_t>(std::max<int64_t>(bytes, 256));
  void* address = nullptr;
  if (memory == TANDEM_MEMORY_PINNED) {
    // Portable: pinned for every GPU of the machine.
    const cudaError_t error = cudaHostAlloc(&address, size, cudaHostAllocPortable);
    if (error == cudaErrorMemoryAllocation) {
      static_cast<void>(cudaGetLastError());
      throw sdk::Refusal(TANDEM_OUT_OF_MEMORY,
                         sdk::text("out of memory: ", mebibytes(bytes),
                                   " of the host's memory cannot be pinned (see ulimit -l)"));
    }
    check(error, "cudaHostAlloc");
    std::memset(address, 0, size);
    return address;
  }
  const cudaError_t error = cudaMalloc(&address, size);
  if (error == cudaErrorMemoryAllocation) {
    static_cast<void>(cudaGetLastError());
    size_t available = 0, total = 0;
    check(cudaMemGetInfo(&available, &total), "cudaMemGetInfo");
    throw sdk::Refusal(TANDEM_OUT_OF_MEMORY,
                       sdk::text("cuda:", ordinal(device), ": out of memory: ", mebibytes(bytes),
                                 " asked for, ", mebibytes(static_cast<int64_t>(available)), " of ",
                                 mebibytes(static_cast<int64_t>(total)), " available"));
  }
  check(error, "cudaMalloc");
  return address;
}

void Machine::release(int32_t device, int32_t memory, void* address) const {
  if (address == nullptr) return;
  // A failure here cannot be reported. At the end of the process the driver may be gone already.
  static_cast<void>(cudaSetDevice(ordinal(device)));
  static_cast<void>(memory == TANDEM_MEMORY_PINNED ? cudaFreeHost(address) : cudaFree(address));
  static_cast<void>(cudaGetLastError());
}

}  // namespace tandem::cuda
