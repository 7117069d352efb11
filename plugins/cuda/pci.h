// Where a PCI device stands in the tree of switches and host bridges, as Linux tells it in sysfs.
#pragma once

#include <string>
#include <vector>

#include "plugins/cuda/gpu_links.h"

namespace tandem::cuda {

struct PciPosition {
  std::vector<PciLink> links;  // from the device's own upwards; empty: nothing is known
  int32_t numa_node = -1;
};

// `id` as "0000:04:00.0", of any case; `devices` is the folder where all devices have their link.
// Where sysfs tells nothing, neither does this.
[[nodiscard]] PciPosition find_pci_position(const std::string& id,
                                            const std::string& devices = "/sys/bus/pci/devices");

// Bytes per second of `lanes` at so many GT/s, without the bits that only the line needs; 0: none.
[[nodiscard]] double pci_bandwidth(double transfers, int lanes);

}  // namespace tandem::cuda
