// How the GPUs of a machine are connected, from facts about each of them and each pair: a pure
// function, so that machines that nobody has here can be tried. Every channel's name says where its
// bandwidth is from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plugins/abi.h"

namespace tandem::cuda {

// A PCIe link: the lower end, and the switch or host bridge that it leads to.
struct PciLink {
  std::string below, above;  // "0000:04:00.0", "pci0000:00"
  double bandwidth = 0;      // of its signals, bytes per second in one direction
  std::string text;          // "PCIe 16 GT/s x16, sysfs"
};

struct GpuFacts {
  std::string name;                  // "cuda:0"
  int32_t major = 0, minor = 0;      // compute capability
  double memory_bandwidth = 0;       // 0: not known
  std::vector<PciLink> pci;          // from the GPU's own to the host bridge's; empty: not known
  int32_t numa_node = -1;            // below 0: not known
  int32_t nvlink_peers = 0;          // GPUs it has NVLinks to, also such as are no devices here
  int32_t switch_links = 0;          // NVLinks to an NVSwitch, by NVML; 0: none, or not told
  double switch_link_bandwidth = 0;  // of each, in one direction
};

// From one GPU to another.
struct PeerFacts {
  bool has_access = false;
  bool has_native_atomics = false;  // of two GPUs: they are linked by NVLink
  int32_t rank = 0;                 // relative: 0 is the best
  int32_t nvlinks = 0;              // between the two, by NVML; 0: none, or not told
  double nvlink_bandwidth = 0;      // of each, in one direction
};

struct LinkFacts {
  std::vector<GpuFacts> gpus;
  std::vector<PeerFacts> peers;  // by source * gpus.size() + target
  std::vector<size_t> devices;   // the GPU that each device of the machine is
};

// Channels and paths, as tandem_topology has them.
struct LinkMap {
  std::vector<std::string> names;
  std::vector<double> bandwidths;  // by channel
  std::vector<double> latencies;   // by source * devices + target
  std::vector<uint32_t> begins, channels;
  std::vector<const char*> name_addresses;

  // It refers to this object, which must stay where it is.
  [[nodiscard]] tandem_topology table();
};

// Whether there are boards with such GPUs on NVSwitches (of GPUs that Tandem's CUDA still knows).
[[nodiscard]] bool may_have_switch(const GpuFacts& gpu);

[[nodiscard]] LinkMap map_links(const LinkFacts& facts);

}  // namespace tandem::cuda
