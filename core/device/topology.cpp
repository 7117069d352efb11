#include "core/device/topology.h"

#include <algorithm>
#include <limits>

#include "core/base/error.h"
#include "core/base/text/strings.h"

namespace tandem {

double Topology::bandwidth(const Path& path) const {
  double smallest = std::numeric_limits<double>::infinity();
  for (const uint32_t channel : path.channels) {
    smallest = std::min(smallest, channels[channel].bandwidth);
  }
  return smallest;
}

void require_sound(const Topology& topology) {
  const size_t devices = topology.devices.size();
  if (topology.paths.size() != devices * devices) {
    throw error("{}: {} paths for {} devices; every pair needs one", topology.file,
                topology.paths.size(), devices);
  }
  for (const Topology::Channel& channel : topology.channels) {
    if (channel.bandwidth > 0) continue;
    throw error("{}: '{}' has a bandwidth of {}, but it must be above 0", topology.file,
                channel.name, channel.bandwidth);
  }
  for (size_t pair = 0; pair < topology.paths.size(); ++pair) {
    const Topology::Path& path = topology.paths[pair];
    for (const uint32_t channel : path.channels) {
      if (channel < topology.channels.size()) continue;
      throw error("{}: a path has channel {}, but there are {}", topology.file, channel,
                  topology.channels.size());
    }
    if (!path.channels.empty() || pair / devices == pair % devices) continue;
    throw error("{}: there is no path from {} to {}", topology.file,
                topology.devices[pair / devices], topology.devices[pair % devices]);
  }
}

std::string source_text(const Topology& topology) {
  if (!topology.text.empty()) return "the topology " + topology.file;
  return "the " + topology.file + " as the backend finds them";
}

std::string links_table(const Topology& topology) {
  std::string text =
      fmt::format("{:<16} {:>10} {:>10}  {}\n", "copy", "GB/s", "latency", "through");
  for (int source = 0; source < topology.device_count(); ++source) {
    for (int target = 0; target < topology.device_count(); ++target) {
      if (source == target) continue;
      std::string through;
      for (const uint32_t channel : topology.path(source, target).channels) {
        through += (through.empty() ? "" : "; ") + topology.channels[channel].name;
      }
      text += fmt::format("{:<16} {:>10.2f} {:>10}  {}\n",
                          fmt::format("{} -> {}", topology.devices[size_t(source)],
                                      topology.devices[size_t(target)]),
                          topology.bandwidth(source, target) / 1e9,
                          human_seconds(topology.path(source, target).latency), through);
    }
  }
  return text;
}

TopologyTable::TopologyTable(const Topology& topology) {
  for (const Topology::Channel& channel : topology.channels) {
    bandwidths_.push_back(channel.bandwidth);
  }
  for (const Topology::Path& path : topology.paths) {
    latencies_.push_back(path.latency);
    begins_.push_back(static_cast<uint32_t>(channels_.size()));
    channels_.insert(channels_.end(), path.channels.begin(), path.channels.end());
  }
  begins_.push_back(static_cast<uint32_t>(channels_.size()));
}

tandem_topology TopologyTable::raw() const {
  return {sizeof(tandem_topology),
          static_cast<uint32_t>(bandwidths_.size()),
          bandwidths_.data(),
          latencies_.data(),
          begins_.data(),
          channels_.data(),
          nullptr};
}

}  // namespace tandem
