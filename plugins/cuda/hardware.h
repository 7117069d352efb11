// The NVIDIA GPUs of this machine as CUDA reports them: how many, their properties, and why there
// are none. It works without a driver.
#pragma once

#include <cstdint>
#include <string>

#include "plugins/abi.h"

namespace tandem::cuda {

// Throws Refusal (TANDEM_FAILED) with what is missing if no GPU can be used.
[[nodiscard]] int32_t gpu_count();
// Also asks for the free memory, for which CUDA initializes itself on that GPU (about 0.3 s and 300
// MiB). Throws Refusal.
[[nodiscard]] tandem_device_info describe_gpu(int32_t ordinal);

// The reason, for a user, why the GPUs cannot be counted: from the error of cudaGetDeviceCount and
// the CUDA versions of the driver (0: there is none) and of this module, as 13020 for 13.2.
[[nodiscard]] std::string no_gpu_reason(int32_t cuda_error, int32_t driver, int32_t runtime);
// float32 operations per cycle of a multiprocessor: units times two.
[[nodiscard]] int32_t flops_per_cycle(int32_t major, int32_t minor);

}  // namespace tandem::cuda
