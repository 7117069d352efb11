#include "core/device/topology.h"

#include <algorithm>
#include <limits>

namespace tandem {

double Topology::bandwidth(int source, int target) const {
  double smallest = std::numeric_limits<double>::infinity();
  for (const uint32_t channel : path(source, target).channels) {
    smallest = std::min(smallest, channels[channel].bandwidth);
  }
  return smallest;
}

double Topology::seconds(int source, int target, int64_t bytes) const {
  return path(source, target).latency + static_cast<double>(bytes) / bandwidth(source, target);
}

}  // namespace tandem
