// What CUDA, sysfs and NVML tell of the GPUs that are a machine's devices, for map_links().
#pragma once

#include <cstdint>
#include <vector>

#include "plugins/cuda/gpu_links.h"

namespace tandem::cuda {

// What is not told is left unknown, and then estimated. Throws Refusal where CUDA fails altogether.
[[nodiscard]] LinkFacts find_link_facts(const std::vector<int32_t>& ordinals);

}  // namespace tandem::cuda
