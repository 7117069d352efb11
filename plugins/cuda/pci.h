// The position of a PCI device in the tree of switches and host bridges, from Linux's sysfs.
#pragma once

#include <string>
#include <vector>

#include "plugins/cuda/gpu_links.h"

namespace tandem::cuda {

struct PciPosition {
  std::vector<PciLink> links;  // from the device's own link upwards; empty: nothing is known
  int32_t numa_node = -1;
};

// `id` is "0000:04:00.0", in upper or lower case. `devices` is the folder with the links of all
// devices. What sysfs does not report is left unknown.
[[nodiscard]] PciPosition find_pci_position(const std::string& id,
                                            const std::string& devices = "/sys/bus/pci/devices");

// Bytes per second of `lanes` lanes at this many GT/s, without the coding bits; 0: none.
[[nodiscard]] double pci_bandwidth(double transfers, int lanes);

}  // namespace tandem::cuda
