// Measures the copies between the devices of a machine: every ordered pair alone, with the other
// direction at the same time, and with every device sending to the next one at once.
#pragma once

#include <vector>

#include "core/device/machine.h"
#include "core/schedule/cost/topology_file.h"

namespace tandem {

struct LinkMeasurement {
  MeasuredLink alone;
  double both_ways = 0;  // bytes per second while the other direction is busy, too
  double contended = 0;  // ... while every device sends; 0 for two devices
};

// Of one pair of the machine's devices.
[[nodiscard]] LinkMeasurement measure_link(const Machine& machine, int source, int target);

// Every ordered pair of the machine's devices, with some copies of 16 MiB for each.
[[nodiscard]] std::vector<LinkMeasurement> measure_links(const Machine& machine);

}  // namespace tandem
