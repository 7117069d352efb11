// A topology as people write it and `tandem devices --measure` does, in protobuf text format:
//   device { name: "gpu0" }  device { name: "gpu1" speed: 0.7 }   # in the order of their numbers
//   hub { name: "pcie" bandwidth: "5GB/s" }     # all that passes shares it, in both directions
//   switch { name: "network" }                  # passes on as fast as its links are
//   link { between: "gpu0" between: "gpu1" and: "pcie" bandwidth: "12GB/s" latency: "5us" }
// A link is one of its own for each `between`, and each direction is a channel of its own;
// `one_way: true` makes it one from `between` to `and`. A copy takes the fastest way through hubs
// and switches; devices pass nothing on.
#pragma once

#include <filesystem>
#include <string>

#include "core/device/topology.h"

namespace tandem {

// Errors name file, line and what would be right: an unknown field or name, a name that is there
// twice, a bandwidth or speed that is not above 0, a negative latency, a missing or wrong unit, no
// device, devices with no way between them.
[[nodiscard]] Topology parse_topology(const std::string& text, const std::string& file);
[[nodiscard]] Topology read_topology(const std::filesystem::path& path);

// A link for every ordered pair, with what was measured of it.
struct MeasuredLink {
  int source = 0, target = 0;
  double bandwidth = 0, latency = 0;
};
[[nodiscard]] std::string topology_text(const std::vector<std::string>& devices,
                                        const std::vector<MeasuredLink>& links);

}  // namespace tandem
