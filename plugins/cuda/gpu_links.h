// The links between the GPUs of a machine, from facts about each GPU and each pair. It is a pure
// function, so that tests can use machines that do not exist here. The name of every channel
// includes the source of its bandwidth.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plugins/abi.h"

namespace tandem::cuda {

// A PCIe link: the lower end, and the switch or host bridge at its upper end.
struct PciLink {
  std::string below, above;  // "0000:04:00.0", "pci0000:00"
  double bandwidth = 0;      // signalling rate, bytes per second in one direction
  std::string text;          // "PCIe 16 GT/s x16, sysfs"
};

struct GpuFacts {
  std::string name;              // "cuda:0"
  int32_t major = 0, minor = 0;  // compute capability
  double memory_bandwidth = 0;   // 0: not known
  std::vector<PciLink> pci;      // from the GPU's own link to the host bridge's; empty: not known
  int32_t numa_node = -1;        // below 0: not known
  int32_t nvlink_peers = 0;  // GPUs that it has NVLinks to, also those that are not devices here
  int32_t switch_links = 0;  // NVLinks to an NVSwitch, from NVML; 0: none, or not known
  double switch_link_bandwidth = 0;  // of each, in one direction
};

// From one GPU to another.
struct PeerFacts {
  bool has_access = false;
  bool has_native_atomics = false;  // the two GPUs are linked by NVLink
  int32_t rank = 0;                 // relative: 0 is the best
  int32_t nvlinks = 0;              // between the two, from NVML; 0: none, or not known
  double nvlink_bandwidth = 0;      // of each, in one direction
};

struct LinkFacts {
  std::vector<GpuFacts> gpus;
  std::vector<PeerFacts> peers;  // by source * gpus.size() + target
  std::vector<size_t> devices;   // the GPU of each device of the machine
};

// Channels and paths, as in tandem_topology.
struct LinkMap {
  std::vector<std::string> names;
  std::vector<double> bandwidths;  // by channel
  std::vector<double> latencies;   // by source * devices + target
  std::vector<uint32_t> begins, channels;
  std::vector<const char*> name_addresses;

  // The result refers to this object, which must not move.
  [[nodiscard]] tandem_topology table();
};

// Whether there are boards with such GPUs on NVSwitches (for GPUs that this version of CUDA
// supports).
[[nodiscard]] bool may_have_switch(const GpuFacts& gpu);

[[nodiscard]] LinkMap map_links(const LinkFacts& facts);

}  // namespace tandem::cuda
