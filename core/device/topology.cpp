#include "core/device/topology.h"

#include <algorithm>
#include <limits>

namespace tandem {

double Topology::bandwidth(const Path& path) const {
  double smallest = std::numeric_limits<double>::infinity();
  for (const uint32_t channel : path.channels) {
    smallest = std::min(smallest, channels[channel].bandwidth);
  }
  return smallest;
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
