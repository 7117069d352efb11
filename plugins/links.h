// What copies between the devices of a machine pass through, and when each of its channels is free:
// one model for the backends that slow copies (cpu) or simulate them (sim). See tandem_topology.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "plugins/sdk.h"

namespace tandem::sdk {

// What a host of an older minor version does not know of is as it was before.
inline tandem_machine_options covered(const tandem_machine_options& given) {
  tandem_machine_options options{};
  std::memcpy(&options, &given, std::min<size_t>(given.struct_size, sizeof options));
  options.struct_size = sizeof options;
  return options;
}

class Links {
 public:
  // Without a topology every ordered pair of devices is a channel of its own; `bandwidth` 0: copies
  // take no longer than they take. Throws Refusal on what makes no sense.
  Links(const tandem_machine_options& options, double bandwidth)
      : devices_(static_cast<size_t>(std::max(options.device_count, 0))) {
    require_not_negative("link bandwidth", options.link_bandwidth);
    require_not_negative("link latency", options.link_latency);
    if (devices_ > most_devices) return;  // the backend refuses them
    if (options.topology != nullptr) {
      take(*options.topology);
    } else if (bandwidth > 0 || options.link_latency > 0) {
      latency_ = options.link_latency;
      channels_.assign(devices_ * devices_, {bandwidth});
    }
  }

  // Whether a copy between two devices has to be reserved.
  [[nodiscard]] bool are_slow() const { return !channels_.empty() || !paths_.empty(); }
  // Takes the path from `source` to `target`, two devices, for `bytes`, each channel from `ready`
  // or when it is free; returns when the copy is done.
  [[nodiscard]] double reserve(int32_t source, int32_t target, int64_t bytes, double ready) {
    const size_t pair = static_cast<size_t>(source) * devices_ + static_cast<size_t>(target);
    if (paths_.empty()) return channels_[pair].serve(bytes, latency_, ready);
    const Path& path = paths_[pair];
    double done = ready;
    for (const uint32_t channel : path.channels) {
      done = std::max(done, channels_[channel].serve(bytes, path.latency, ready));
    }
    return done;
  }

 private:
  static constexpr size_t most_devices = 1024;
  // As packets do, small copies pass between the pieces of large ones: they wait for each other
  // only, and what they take is taken from the large.
  static constexpr int64_t small = 16 << 10;
  struct Channel {
    double bandwidth = 0;                // 0: no limit
    double free = 0, free_of_small = 0;  // when its last copy leaves it
    double serve(int64_t bytes, double latency, double ready) {
      const double seconds = latency + (bandwidth > 0 ? static_cast<double>(bytes) / bandwidth : 0);
      if (bytes > small) return free = std::max(ready, free) + seconds;
      free_of_small = std::max(ready, free_of_small) + seconds;
      free = std::max(free > ready ? free + seconds : 0, free_of_small);
      return free_of_small;
    }
  };
  struct Path {
    double latency = 0;
    std::vector<uint32_t> channels;
  };

  static void require_not_negative(const char* what, double value) {
    if (!(value >= 0)) throw invalid(what, " ", value, " must not be negative");
  }

  void take(const tandem_topology& topology) {
    for (uint32_t i = 0; i < topology.channel_count; ++i) {
      if (!(topology.bandwidths[i] > 0)) {
        throw invalid("channel ", i, " has a bandwidth of ", topology.bandwidths[i]);
      }
      channels_.push_back({topology.bandwidths[i]});
    }
    for (size_t pair = 0; pair < devices_ * devices_; ++pair) {
      require_not_negative("latency", topology.latencies[pair]);
      Path path{topology.latencies[pair], {}};
      for (uint32_t i = topology.path_begins[pair]; i < topology.path_begins[pair + 1]; ++i) {
        if (topology.path_channels[i] >= topology.channel_count) {
          throw invalid("channel ", topology.path_channels[i], " of ", topology.channel_count);
        }
        path.channels.push_back(topology.path_channels[i]);
      }
      paths_.push_back(std::move(path));
    }
  }

  size_t devices_;
  double latency_ = 0;             // of every path, without a topology
  std::vector<Channel> channels_;  // without a topology: by source * devices_ + target
  std::vector<Path> paths_;        // of a topology
};

}  // namespace tandem::sdk
