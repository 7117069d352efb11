#include "plugins/cuda/gpu_links.h"

#include <algorithm>
#include <map>
#include <utility>

#include "plugins/sdk.h"

namespace tandem::cuda {

bool may_have_switch(const GpuFacts& gpu) {
  return gpu.major >= 9 || (gpu.major == 8 && gpu.minor == 0);
}

namespace {

// The payload as a fraction of the signalling rate.
constexpr double efficiency = 0.85;
// Estimated latencies of copies; --measure finds the true ones.
constexpr double memory_latency = 4e-6, nvlink_latency = 5e-6, pci_latency = 8e-6,
                 host_latency = 20e-6;
// The estimated bandwidth that copies through pinned host memory, or between two processors, share.
constexpr double host_bandwidth = 20e9, processors_bandwidth = 30e9;
constexpr double unknown_memory_bandwidth = 200e9;

struct Estimate {
  int32_t links;     // per GPU
  double bandwidth;  // per link, in one direction
};
// NVLinks of the data-center GPUs of an architecture. This also limits the bandwidth of links of a
// higher version: boards may have slower signals than their version allows.
Estimate nvlinks_of(const GpuFacts& gpu) {
  if (gpu.major >= 10) return {18, 50e9};
  if (gpu.major == 9) return {18, 25e9};
  if (gpu.major == 8) return gpu.minor == 0 ? Estimate{12, 25e9} : Estimate{4, 14e9};
  return {6, 25e9};
}
double bandwidth_of_link(const GpuFacts& gpu, double reported) {
  return std::min(reported, nvlinks_of(gpu).bandwidth);
}
// For a GPU whose PCIe link is not known: 16 lanes of its generation.
double pci_bandwidth_of(const GpuFacts& gpu) {
  return gpu.major >= 9 ? 63e9 : gpu.major == 8 ? 31.5e9 : 15.75e9;
}

class Mapper {
 public:
  explicit Mapper(const LinkFacts& facts) : facts_(facts), gpus_(facts.gpus.size()) {}

  LinkMap map() {
    const size_t devices = facts_.devices.size();
    for (size_t source = 0; source < devices; ++source) {
      for (size_t target = 0; target < devices; ++target) {
        result_.begins.push_back(static_cast<uint32_t>(result_.channels.size()));
        result_.latencies.push_back(
            source == target ? 0 : add_path(facts_.devices[source], facts_.devices[target]));
      }
    }
    result_.begins.push_back(static_cast<uint32_t>(result_.channels.size()));
    return std::move(result_);
  }

 private:
  [[nodiscard]] const PeerFacts& peer(size_t source, size_t target) const {
    return facts_.peers[source * gpus_ + target];
  }
  // Also if NVML reports no link: a virtual machine may hide where its links lead.
  [[nodiscard]] bool is_nvlink(size_t source, size_t target) const {
    const PeerFacts& pair = peer(source, target);
    if (source == target || !pair.has_access) return false;
    return pair.nvlinks > 0 || pair.has_native_atomics;
  }
  [[nodiscard]] bool has_counted_switch(size_t source, size_t target) const {
    return facts_.gpus[source].switch_links > 0 && facts_.gpus[target].switch_links > 0;
  }

  // Appends the channels of the path; returns its latency.
  double add_path(size_t source, size_t target) {
    const GpuFacts &from = facts_.gpus[source], &to = facts_.gpus[target];
    if (source == target) {
      // Every copy on one GPU reads and writes its memory, which all of them share.
      const bool is_known = from.memory_bandwidth > 0;
      pass("memory of " + from.name + (is_known ? " (read and written)" : " (estimated)"),
           (is_known ? from.memory_bandwidth : unknown_memory_bandwidth) / 2);
      return memory_latency;
    }
    if (!peer(source, target).has_access) return add_host_path(from, to);
    if (goes_through_switch(source, target)) return add_switch_path(from, to);
    if (is_nvlink(source, target)) return add_nvlink_path(source, target);
    return add_pci_path(from, to);
  }

  [[nodiscard]] bool goes_through_switch(size_t source, size_t target) const {
    if (has_counted_switch(source, target)) return true;
    if (peer(source, target).nvlinks > 0) return false;
    // Boards of four GPUs have links between all pairs. If more GPUs all reach each other, there
    // are switches.
    constexpr int32_t max_direct_peers = 3;
    for (size_t a = 0; a < gpus_; ++a) {
      const GpuFacts& gpu = facts_.gpus[a];
      if (!may_have_switch(gpu) || gpu.nvlink_peers <= max_direct_peers) return false;
      for (size_t b = 0; b < gpus_; ++b) {
        if (a != b && !is_nvlink(a, b)) return false;
      }
    }
    return gpus_ > 1;
  }
  double add_switch_path(const GpuFacts& from, const GpuFacts& to) {
    pass(from.name + " -> NVSwitch" + switch_text(from), switch_bandwidth(from));
    pass("NVSwitch -> " + to.name + switch_text(to), switch_bandwidth(to));
    return nvlink_latency;
  }
  static std::string switch_text(const GpuFacts& gpu) {
    return gpu.switch_links > 0 ? sdk::text(" (", gpu.switch_links, " NVLinks, NVML)")
                                : estimated_text(gpu, nvlinks_of(gpu).links);
  }
  static double switch_bandwidth(const GpuFacts& gpu) {
    const Estimate estimate = nvlinks_of(gpu);
    return efficiency * (gpu.switch_links > 0
                             ? gpu.switch_links * bandwidth_of_link(gpu, gpu.switch_link_bandwidth)
                             : estimate.links * estimate.bandwidth);
  }
  static std::string estimated_text(const GpuFacts& gpu, int32_t links) {
    return sdk::text(" (", links, links == 1 ? " NVLink" : " NVLinks",
                     ", estimated for compute capability ", gpu.major, ".", gpu.minor, ")");
  }

  double add_nvlink_path(size_t source, size_t target) {
    const GpuFacts &from = facts_.gpus[source], &to = facts_.gpus[target];
    const PeerFacts& pair = peer(source, target);
    const std::string ends = from.name + " -> " + to.name;
    if (pair.nvlinks > 0) {
      pass(ends +
               sdk::text(" (", pair.nvlinks, pair.nvlinks == 1 ? " NVLink" : " NVLinks", ", NVML)"),
           efficiency * pair.nvlinks * bandwidth_of_link(from, pair.nvlink_bandwidth));
      return nvlink_latency;
    }
    const int32_t links = estimated_links(source, target);
    pass(ends + estimated_text(from, links), efficiency * links * nvlinks_of(from).bandwidth);
    return nvlink_latency;
  }

  // A GPU's links are divided among its neighbors; the remainder goes to the pairs with the best
  // rank.
  [[nodiscard]] int32_t estimated_links(size_t source, size_t target) const {
    const GpuFacts& from = facts_.gpus[source];
    const int32_t all = nvlinks_of(from).links;
    const int32_t peers = std::max({from.nvlink_peers, facts_.gpus[target].nvlink_peers, 1});
    int32_t best = peer(source, target).rank, worst = best;
    for (size_t a = 0; a < gpus_; ++a) {
      for (size_t b = 0; b < gpus_; ++b) {
        if (!is_nvlink(a, b)) continue;
        best = std::min(best, peer(a, b).rank);
        worst = std::max(worst, peer(a, b).rank);
      }
    }
    const bool has_more = best < worst && peer(source, target).rank == best && all % peers > 0;
    return std::max(all / peers, 1) + (has_more ? 1 : 0);
  }

  // Up to the first common switch or host bridge, and down again.
  double add_pci_path(const GpuFacts& from, const GpuFacts& to) {
    const std::vector<PciLink> up = pci_of(from), down = pci_of(to);
    for (size_t i = 0; i < up.size(); ++i) {
      for (size_t j = 0; j < down.size(); ++j) {
        if (up[i].above != down[j].above) continue;
        pass_pci(from, up, i + 1, to, down, j + 1);
        return pci_latency;
      }
    }
    pass_pci(from, up, up.size(), to, down, down.size());
    return pci_latency;
  }
  // CUDA copies to pinned host memory and from there.
  double add_host_path(const GpuFacts& from, const GpuFacts& to) {
    const std::vector<PciLink> up = pci_of(from), down = pci_of(to);
    pass_pci(from, up, up.size(), to, down, down.size());
    pass("host memory (no P2P; estimated)", host_bandwidth);
    return host_latency;
  }
  void pass_pci(const GpuFacts& from, const std::vector<PciLink>& up, size_t up_links,
                const GpuFacts& to, const std::vector<PciLink>& down, size_t down_links) {
    for (size_t i = 0; i < up_links; ++i) {
      pass(below(from, up, i) + " -> " + up[i].above + " (" + up[i].text + ")",
           efficiency * up[i].bandwidth);
    }
    const bool reach_hosts = up_links == up.size() && down_links == down.size();
    if (reach_hosts && from.numa_node >= 0 && to.numa_node >= 0 && from.numa_node != to.numa_node) {
      pass("between the processors (estimated)", processors_bandwidth);
    }
    for (size_t i = down_links; i-- > 0;) {
      pass(down[i].above + " -> " + below(to, down, i) + " (" + down[i].text + ")",
           efficiency * down[i].bandwidth);
    }
  }
  static std::string below(const GpuFacts& gpu, const std::vector<PciLink>& links, size_t i) {
    return i == 0 ? gpu.name : links[i].below;
  }
  static std::vector<PciLink> pci_of(const GpuFacts& gpu) {
    if (!gpu.pci.empty()) return gpu.pci;
    return {{gpu.name, "host", pci_bandwidth_of(gpu), "PCIe x16, estimated"}};
  }

  void pass(const std::string& name, double bandwidth) {
    const auto next = static_cast<uint32_t>(result_.names.size());
    const auto [found, is_new] = numbers_.emplace(name, next);
    if (is_new) {
      result_.names.push_back(name);
      result_.bandwidths.push_back(bandwidth);
    }
    result_.channels.push_back(found->second);
  }

  const LinkFacts& facts_;
  size_t gpus_;
  LinkMap result_;
  std::map<std::string, uint32_t> numbers_;  // of channels
};

}  // namespace

tandem_topology LinkMap::table() {
  name_addresses.clear();
  for (const std::string& name : names) name_addresses.push_back(name.c_str());
  return {sizeof(tandem_topology), static_cast<uint32_t>(names.size()),
          bandwidths.data(),       latencies.data(),
          begins.data(),           channels.data(),
          name_addresses.data()};
}

LinkMap map_links(const LinkFacts& facts) {
  return Mapper(facts).map();
}

}  // namespace tandem::cuda
