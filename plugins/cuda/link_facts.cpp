#include "plugins/cuda/link_facts.h"

#include <algorithm>
#include <array>
#include <string>

#include "plugins/cuda/hardware.h"
#include "plugins/cuda/nvml.h"
#include "plugins/cuda/pci.h"
#include "plugins/cuda/status.h"

namespace tandem::cuda {

namespace {

// "" if CUDA does not report it.
std::string pci_id(int32_t ordinal) {
  std::array<char, 64> text{};
  if (cudaDeviceGetPCIBusId(text.data(), text.size(), ordinal) != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    return "";
  }
  std::string id(text.data());
  std::transform(id.begin(), id.end(), id.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return id;
}

int32_t between(cudaDeviceP2PAttr which, int32_t source, int32_t target) {
  int value = 0;
  if (cudaDeviceGetP2PAttribute(&value, which, source, target) != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    return 0;
  }
  return value;
}

GpuFacts facts_of(int32_t ordinal, const std::string& id) {
  GpuFacts gpu;
  gpu.name = sdk::text("cuda:", ordinal);
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, ordinal), "cudaGetDeviceProperties");
  gpu.major = properties.major;
  gpu.minor = properties.minor;
  gpu.memory_bandwidth = describe_gpu(ordinal).memory_bandwidth;
  const PciPosition position = id.empty() ? PciPosition{} : find_pci_position(id);
  gpu.pci = position.links;
  gpu.numa_node = position.numa_node;
  return gpu;
}

// Virtual machines hide switches more often than they hide their own GPUs. A GPU whose peers have
// no atomics with it has links to GPUs outside this machine.
bool leads_to_switch(const NvLink& link, const GpuFacts& gpu) {
  if (link.leads_to_switch) return true;
  return link.remote.empty() && link.is_of_unknown_type && gpu.nvlink_peers > 0 &&
         may_have_switch(gpu);
}

}  // namespace

void count_nvlinks(const NvLinks& found, const std::vector<std::string>& ids, LinkFacts& facts) {
  if (!found.are_known) return;
  for (size_t gpu = 0; gpu < ids.size(); ++gpu) {
    for (const NvLink& link : found.links[gpu]) {
      const auto remote = std::find(ids.begin(), ids.end(), link.remote);
      if (leads_to_switch(link, facts.gpus[gpu])) {
        ++facts.gpus[gpu].switch_links;
        facts.gpus[gpu].switch_link_bandwidth = link.bandwidth;
      } else if (remote != ids.end()) {
        const auto other = static_cast<size_t>(remote - ids.begin());
        PeerFacts& pair = facts.peers[gpu * ids.size() + other];
        ++pair.nvlinks;
        pair.nvlink_bandwidth = link.bandwidth;
      }
    }
  }
}

LinkFacts find_link_facts(const std::vector<int32_t>& ordinals) {
  std::vector<int32_t> gpus = ordinals;
  std::sort(gpus.begin(), gpus.end());
  gpus.erase(std::unique(gpus.begin(), gpus.end()), gpus.end());
  LinkFacts facts;
  for (const int32_t ordinal : ordinals) {
    facts.devices.push_back(
        static_cast<size_t>(std::lower_bound(gpus.begin(), gpus.end(), ordinal) - gpus.begin()));
  }
  std::vector<std::string> ids;
  for (const int32_t ordinal : gpus) {
    ids.push_back(pci_id(ordinal));
    facts.gpus.push_back(facts_of(ordinal, ids.back()));
  }
  for (const int32_t source : gpus) {
    for (const int32_t target : gpus) {
      PeerFacts pair;
      if (source != target) {
        pair.has_access = between(cudaDevP2PAttrAccessSupported, source, target) != 0;
        pair.has_native_atomics = between(cudaDevP2PAttrNativeAtomicSupported, source, target) != 0;
        pair.rank = between(cudaDevP2PAttrPerformanceRank, source, target);
      }
      facts.peers.push_back(pair);
    }
  }
  // All GPUs, also those that are not devices here: links to them do not count for these.
  const int32_t all = gpu_count();
  for (size_t gpu = 0; gpu < gpus.size(); ++gpu) {
    for (int32_t other = 0; other < all; ++other) {
      if (other == gpus[gpu]) continue;
      facts.gpus[gpu].nvlink_peers +=
          between(cudaDevP2PAttrNativeAtomicSupported, gpus[gpu], other);
    }
  }
  if (gpus.size() > 1) count_nvlinks(find_nvlinks(ids), ids, facts);
  return facts;
}

}  // namespace tandem::cuda
