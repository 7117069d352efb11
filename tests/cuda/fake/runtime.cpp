// A stand-in for CUDA's run-time library (and the few functions of cuBLAS and cuDNN that the
// backend calls), to be preloaded: streams and events with the documented behavior of CUDA, on the
// host. What a GPU would forbid ends the program or returns CUDA's error. TANDEM_FAKE_GPUS: the
// number of GPUs (1).
#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "tests/cuda/fake/stream.h"

namespace {

using tandem::fake::current_device;
using tandem::fake::give_up;
using tandem::fake::gpu_count;
using tandem::fake::recorded;
using tandem::fake::refused_in_capture;
using tandem::fake::Stream;

constexpr size_t memory_bytes = size_t{16} << 30;

// The allocated memory of a GPU, with its addresses.
std::mutex memory_mutex;
std::map<void*, std::pair<int, size_t>> allocated;
std::map<int, size_t> allocated_bytes;

struct Launch {
  dim3 grid, block;
  size_t shared;
  cudaStream_t stream;
};
thread_local std::vector<Launch> launches;
std::map<const void*, std::string> kernels;

}  // namespace

bool tandem::fake::is_device_memory(const void* address, size_t bytes) {
  const std::lock_guard lock(memory_mutex);
  auto after = allocated.upper_bound(const_cast<void*>(address));
  if (after == allocated.begin()) return false;
  const auto& [begin, memory] = *--after;
  return static_cast<const char*>(address) + bytes <=
         static_cast<const char*>(begin) + memory.second;
}

extern "C" {

void** __cudaRegisterFatBinary(void*) {
  static void* handle = nullptr;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction(void**, const char* host, char*, const char* name, int, uint3*, uint3*,
                            dim3*, dim3*, int*) {
  kernels[host] = name;
}
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream) {
  launches.push_back({grid, block, shared, stream});
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream) {
  const Launch launch = launches.back();
  launches.pop_back();
  *grid = launch.grid;
  *block = launch.block;
  *shared = launch.shared;
  *static_cast<cudaStream_t*>(stream) = launch.stream;
  return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(function));
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t,
                               cudaStream_t stream) {
  if (Stream::of(stream).device() != current_device) {
    give_up("a kernel is launched on a stream of another GPU than the current one");
  }
  if (grid.x == 0 || block.x == 0 || block.x > 1024) return recorded(cudaErrorInvalidConfiguration);
  auto body = tandem::fake::kernel_body(kernels[kernel].c_str(), grid.x, arguments);
  if (body == nullptr) return recorded(cudaErrorInvalidDeviceFunction);
  return recorded(Stream::of(stream).issue(std::move(body)));
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* user) {
  return recorded(Stream::of(stream).issue([=] { function(user); }));
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = gpu_count();
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = current_device;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= gpu_count()) return recorded(cudaErrorInvalidDevice);
  current_device = device;
  return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) {
  static bool is_enabled = false;
  return std::exchange(is_enabled, true) ? recorded(cudaErrorPeerAccessAlreadyEnabled)
                                         : cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
  *value = 1'000'000;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* lowest, int* highest) {
  *lowest = 0;
  *highest = -5;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  std::strcpy(properties->name, "stand-in for a GPU");
  properties->major = 9;
  properties->multiProcessorCount = 4;
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* available, size_t* total) {
  const std::lock_guard lock(memory_mutex);
  *available = memory_bytes - std::min(memory_bytes, allocated_bytes[current_device]);
  *total = memory_bytes;
  return cudaSuccess;
}
cudaError_t cudaGetLastError() {
  return std::exchange(tandem::fake::last_error, cudaSuccess);
}

cudaError_t cudaMalloc(void** address, size_t bytes) {
  if (refused_in_capture()) return recorded(cudaErrorStreamCaptureUnsupported);
  constexpr size_t alignment = 256;
  if (bytes > memory_bytes) return recorded(cudaErrorMemoryAllocation);
  *address = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  std::memset(*address, 0xff, bytes);  // NaN until it is written
  const std::lock_guard lock(memory_mutex);
  allocated[*address] = {current_device, bytes};
  allocated_bytes[current_device] += bytes;
  return cudaSuccess;
}
cudaError_t cudaFree(void* address) {
  if (refused_in_capture()) return recorded(cudaErrorStreamCaptureUnsupported);
  {
    const std::lock_guard lock(memory_mutex);
    const auto found = allocated.find(address);
    if (found != allocated.end()) {
      allocated_bytes[found->second.first] -= found->second.second;
      allocated.erase(found);
    }
  }
  std::free(address);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* target, int value, size_t bytes, cudaStream_t stream) {
  return recorded(Stream::of(stream).issue([=] { std::memset(target, value, bytes); }));
}

// Handles only store cuBLAS's mode.
int cublasCreate_v2(void** handle) {
  return (*handle = std::calloc(1, sizeof(int))) == nullptr ? 1 : 0;
}
int cublasSetMathMode(void* handle, int mode) {
  *static_cast<int*>(handle) = mode;
  return 0;
}
int cublasGetMathMode(void* handle, int* mode) {
  *mode = *static_cast<int*>(handle);
  return 0;
}
int cublasSetWorkspace_v2(void*, void* workspace, size_t) {
  return workspace == nullptr ? 1 : 0;
}
int cublasDestroy_v2(void* handle) {
  std::free(handle);
  return 0;
}
int cublasSetStream_v2(void*, cudaStream_t) {
  return 0;
}
int cublasSetAtomicsMode(void*, int) {
  return 0;
}
int cudnnCreate(void** handle) {
  return cublasCreate_v2(handle);
}
int cudnnDestroy(void* handle) {
  return cublasDestroy_v2(handle);
}
int cudnnSetStream(void*, cudaStream_t) {
  return 0;
}

}  // extern "C"
