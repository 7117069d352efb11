// How the devices of a machine are connected, and how fast each is: channels that serve one copy
// after the other, and the path of every pair of devices through them (tandem_topology says how
// they serve). Plain data; core/schedule/cost/topology_file.h reads it from a file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "plugins/abi.h"

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
  std::string file, text;            // where it was read, and its text there
  std::vector<std::string> devices;  // names, by device
  std::vector<double> speeds;        // of compute, by device: 1 as the costs say, 0.5 half as fast
  std::vector<Channel> channels;
  std::vector<Path> paths;  // by source * device_count() + target; from a device to itself: empty

  [[nodiscard]] int device_count() const { return static_cast<int>(devices.size()); }
  [[nodiscard]] const Path& path(int source, int target) const {
    return paths[size_t(source * device_count() + target)];
  }
  // Of the path's slowest channel, bytes per second.
  [[nodiscard]] double bandwidth(const Path& path) const;
  [[nodiscard]] double bandwidth(int source, int target) const {
    return bandwidth(path(source, target));
  }
  // Of a copy that meets no other.
  [[nodiscard]] double seconds(const Path& path, int64_t bytes) const {
    return path.latency + static_cast<double>(bytes) / bandwidth(path);
  }
  [[nodiscard]] double seconds(int source, int target, int64_t bytes) const {
    return seconds(path(source, target), bytes);
  }
};

class Machine;
// The links between a machine's devices as its backend finds them, with the `text` "". Null if the
// backend knows nothing of links, or there is one device. Error if the backend fails or returns a
// topology that is not sound.
[[nodiscard]] std::shared_ptr<const Topology> find_topology(const Machine& machine);

// Errors: no path for a pair, a path through a channel that does not exist, a bandwidth that is not
// above 0. For a topology that parse_topology(), which checks this, did not read.
void require_sound(const Topology& topology);

// For a sentence: "the topology FILE", or the devices whose links were found.
[[nodiscard]] std::string source_text(const Topology& topology);

// A line for each pair: "gpu0 -> gpu1", bandwidth, latency, and the channels of the path.
[[nodiscard]] std::string links_table(const Topology& topology);

// A topology as the ABI has it.
class TopologyTable {
 public:
  explicit TopologyTable(const Topology& topology);
  // Refers to this object.
  [[nodiscard]] tandem_topology raw() const;

 private:
  std::vector<double> bandwidths_, latencies_;
  std::vector<uint32_t> begins_, channels_;
};

}  // namespace tandem
