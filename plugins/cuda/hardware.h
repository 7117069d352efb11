// The NVIDIA GPUs of this machine as CUDA tells of them: how many, what they are, and why there are
// none. Works without a driver.
#pragma once

#include <cstdint>
#include <string>

#include "plugins/abi.h"

namespace tandem::cuda {

// Throws Refusal (TANDEM_FAILED) that says what is missing if there is none to be used.
[[nodiscard]] int32_t gpu_count();
// Asks for the free memory, too, for which CUDA sets itself up on that GPU (some 0.3 s, some 300
// MiB). Throws Refusal.
[[nodiscard]] tandem_device_info describe_gpu(int32_t ordinal);

// Why the GPUs cannot be counted, for a user: what cudaGetDeviceCount said, and the versions of
// CUDA that the driver (0: there is none) and this module are of, as 13020 for 13.2.
[[nodiscard]] std::string no_gpu_reason(int32_t cuda_error, int32_t driver, int32_t runtime);
// float32 operations per second of a multiprocessor and cycle: units times two.
[[nodiscard]] int32_t flops_per_cycle(int32_t major, int32_t minor);

}  // namespace tandem::cuda
