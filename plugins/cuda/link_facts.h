// What CUDA, sysfs and NVML tell of the GPUs that are a machine's devices, for map_links().
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plugins/cuda/gpu_links.h"
#include "plugins/cuda/nvml.h"

namespace tandem::cuda {

// What is not told is left unknown, and then estimated. Throws Refusal where CUDA fails altogether.
[[nodiscard]] LinkFacts find_link_facts(const std::vector<int32_t>& ordinals);

// What NVML tells of links, to the GPUs' other facts. `ids`: PCI ids by GPU.
void count_nvlinks(const NvLinks& found, const std::vector<std::string>& ids, LinkFacts& facts);

}  // namespace tandem::cuda
