// What CUDA, sysfs and NVML report about the GPUs that are a machine's devices, for map_links().
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plugins/cuda/gpu_links.h"
#include "plugins/cuda/nvml.h"

namespace tandem::cuda {

// What is not reported is left unknown, and then estimated. Throws Refusal if CUDA fails.
[[nodiscard]] LinkFacts find_link_facts(const std::vector<int32_t>& ordinals);

// Adds what NVML reports about links to the facts of the GPUs. `ids`: PCI ids by GPU.
void count_nvlinks(const NvLinks& found, const std::vector<std::string>& ids, LinkFacts& facts);

}  // namespace tandem::cuda
