#include "plugins/cuda/hardware.h"

#include <cstdlib>

#include "plugins/cuda/status.h"

namespace tandem::cuda {

namespace {

std::string version(int32_t number) {
  return sdk::text(number / 1000, ".", number % 1000 / 10);
}

double attribute(cudaDeviceAttr which, int32_t ordinal) {
  int value = 0;
  if (cudaDeviceGetAttribute(&value, which, ordinal) != cudaSuccess) {
    static_cast<void>(cudaGetLastError());  // virtual GPUs do not report some of them
    return 0;
  }
  return value;
}

}  // namespace

std::string no_gpu_reason(int32_t cuda_error, int32_t driver, int32_t runtime) {
  const auto error = static_cast<cudaError_t>(cuda_error);
  const std::string said = sdk::text(" (cudaGetDeviceCount: ", cudaGetErrorString(error), ")");
  if (driver == 0) {
    return sdk::text("no NVIDIA driver was found: install one that supports CUDA ",
                     version(runtime), said);
  }
  if (error == cudaErrorInsufficientDriver) {
    return sdk::text("the NVIDIA driver supports CUDA ", version(driver), ", this needs ",
                     version(runtime / 1000 * 1000), ": install a newer driver", said);
  }
  if (error == cudaErrorNoDevice) {
    const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
    return sdk::text(
        "there is a driver, but no NVIDIA GPU",
        visible == nullptr ? "" : sdk::text("; CUDA_VISIBLE_DEVICES is '", visible, "'"), said);
  }
  return sdk::text("the NVIDIA GPUs cannot be counted", said);
}

int32_t gpu_count() {
  int count = 0;
  cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess && count > 0) return count;
  static_cast<void>(cudaGetLastError());
  if (error == cudaSuccess) error = cudaErrorNoDevice;
  int driver = 0, runtime = 0;
  static_cast<void>(cudaDriverGetVersion(&driver));
  static_cast<void>(cudaRuntimeGetVersion(&runtime));
  static_cast<void>(cudaGetLastError());
  throw sdk::Refusal(TANDEM_FAILED, no_gpu_reason(error, driver, runtime));
}

int32_t flops_per_cycle(int32_t major, int32_t minor) {
  const bool has_64_units = major < 8 || (major == 8 && minor == 0);
  return has_64_units ? 128 : 256;
}

tandem_device_info describe_gpu(int32_t ordinal) {
  tandem_device_info info{};
  info.struct_size = sizeof info;
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, ordinal), "cudaGetDeviceProperties");
  std::string(properties.name).copy(info.name, sizeof info.name - 1);
  check(cudaSetDevice(ordinal), "cudaSetDevice");
  size_t available = 0, total = 0;
  check(cudaMemGetInfo(&available, &total), "cudaMemGetInfo");
  info.memory_bytes = static_cast<int64_t>(total);
  info.available_bytes = static_cast<int64_t>(available);
  constexpr double kilohertz = 1e3;
  info.peak_flops = attribute(cudaDevAttrClockRate, ordinal) * kilohertz *
                    properties.multiProcessorCount *
                    flops_per_cycle(properties.major, properties.minor);
  // Two transfers per cycle of this many bits.
  info.memory_bandwidth = attribute(cudaDevAttrMemoryClockRate, ordinal) * kilohertz * 2 *
                          attribute(cudaDevAttrGlobalMemoryBusWidth, ordinal) / 8;
  return info;
}

}  // namespace tandem::cuda
