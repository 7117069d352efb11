// How the devices of a machine are connected, and how fast each is: channels that copies take, one
// after the other, and the path of every pair of devices through them. Pure data; read from a file
// by core/schedule/cost/topology_file.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tandem {

struct Topology {
  struct Channel {
    std::string name;      // "gpu0 -> switch0", or a hub's
    double bandwidth = 0;  // bytes per second
  };
  struct Path {
    double latency = 0;  // seconds
    std::vector<uint32_t> channels;
  };
  std::string file, text;            // where it was read, and what
  std::vector<std::string> devices;  // names, by device
  std::vector<double> speeds;        // of compute, by device: 1 as the costs say, 0.5 half as fast
  std::vector<Channel> channels;
  std::vector<Path> paths;  // by source * device_count() + target; from a device to itself: empty

  [[nodiscard]] int device_count() const { return static_cast<int>(devices.size()); }
  [[nodiscard]] const Path& path(int source, int target) const {
    return paths[static_cast<size_t>(source * device_count() + target)];
  }
  // Of the path's slowest channel, bytes per second.
  [[nodiscard]] double bandwidth(int source, int target) const;
  // Of a copy that meets no other.
  [[nodiscard]] double seconds(int source, int target, int64_t bytes) const;
};

}  // namespace tandem
