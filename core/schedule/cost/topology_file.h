// A topology as users and `tandem devices --measure` write it, in protobuf text format:
//   device { name: "gpu0" }  device { name: "gpu1" speed: 0.7 }   # in the order of their numbers
//   hub { name: "pcie" bandwidth: "5GB/s" }     # shared by all copies through it, both directions
//   switch { name: "network" }                  # as fast as its links
//   link { between: "gpu0" between: "gpu1" and: "pcie" bandwidth: "12GB/s" latency: "5us" }
// There is a link for each `between`, with a channel in each direction; `one_way: true` leaves only
// the one from `between` to `and`. A copy takes the fastest path through hubs and switches, and
// never passes through a third device.
#pragma once

#include <filesystem>
#include <string>

#include "core/device/topology.h"

namespace tandem {

// Errors name file, line and what would be right: an unknown field or name, a name that occurs
// twice, a bandwidth or speed that is not above 0, a negative latency, a missing or wrong unit, no
// device, devices without a path between them.
[[nodiscard]] Topology parse_topology(const std::string& text, const std::string& file);
[[nodiscard]] Topology read_topology(const std::filesystem::path& path);

// What was measured of the link of an ordered pair of devices.
struct MeasuredLink {
  int source = 0, target = 0;
  double bandwidth = 0, latency = 0;
};
[[nodiscard]] std::string topology_text(const std::vector<std::string>& devices,
                                        const std::vector<MeasuredLink>& links);

}  // namespace tandem
