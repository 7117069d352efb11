// The links between the devices of a machine: the channels that a copy of each pair of devices
// uses, how long it takes, and when each channel is free. This is the one model of tandem_topology,
// for slowed copies (cpu), for simulated ones (sim) and for predictions (core/schedule/cost).
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "plugins/abi.h"

namespace tandem::timing {

// Copies within a device, and from or to the host, do not.
[[nodiscard]] inline bool uses_links(int32_t source, int32_t target) {
  return source != target && source != TANDEM_HOST && target != TANDEM_HOST;
}

class Links {
 public:
  // The options must be sound. Without a topology every ordered pair of devices has a channel of
  // its own, of the options' bandwidth, or of `assumed_bandwidth` where they give none. 0: no
  // limit.
  Links(const tandem_machine_options& options, double assumed_bandwidth)
      : devices_(static_cast<size_t>(options.device_count)) {
    const size_t pairs = devices_ * devices_;
    if (const tandem_topology* topology = options.topology; topology != nullptr) {
      const double* const bandwidths = topology->bandwidths;
      channels_ = std::vector<Channel>(bandwidths, bandwidths + topology->channel_count);
      latencies_.assign(topology->latencies, topology->latencies + pairs);
      begins_.assign(topology->path_begins, topology->path_begins + pairs + 1);
      path_channels_.assign(topology->path_channels, topology->path_channels + begins_[pairs]);
      return;
    }
    const double bandwidth =
        options.link_bandwidth > 0 ? options.link_bandwidth : assumed_bandwidth;
    if (bandwidth <= 0 && options.link_latency <= 0) return;
    channels_.assign(pairs, Channel(bandwidth));
    latencies_.assign(pairs, options.link_latency);
    begins_.resize(pairs + 1);
    std::iota(begins_.begin(), begins_.end(), 0);
    path_channels_.assign(begins_.begin(), begins_.end() - 1);
  }

  // False: copies take no longer than they take, and the functions below must not be called.
  [[nodiscard]] bool are_slow() const { return !channels_.empty(); }

  // Of a copy between two devices that meets no other.
  [[nodiscard]] double seconds(int32_t source, int32_t target, int64_t bytes) const {
    double most = 0;
    const Path path = path_of(source, target);
    for (const uint32_t channel : path.channels) {
      most = std::max(most, channels_[channel].seconds(path.latency, bytes));
    }
    return most;
  }

  // Reserves each channel of the path from `ready`, or from when it is free. Returns when the copy
  // is done.
  double reserve(int32_t source, int32_t target, int64_t bytes, double ready) {
    double done = ready;
    const Path path = path_of(source, target);
    for (const uint32_t channel : path.channels) {
      done = std::max(done, channels_[channel].serve(bytes, path.latency, ready));
    }
    return done;
  }

  // From when on a copy would take no longer than alone.
  [[nodiscard]] double free_for(int32_t source, int32_t target, int64_t bytes) const {
    const double alone = seconds(source, target, bytes);
    double from = 0;
    const Path path = path_of(source, target);
    for (const uint32_t number : path.channels) {
      const Channel& channel = channels_[number];
      const double free = bytes > small ? channel.free : channel.free_of_small;
      from = std::max(from, free + channel.seconds(path.latency, bytes) - alone);
    }
    return from;
  }

 private:
  // Packets of small copies pass between those of large ones: small copies wait for each other
  // only, and delay the large ones.
  static constexpr int64_t small = 16 << 10;

  struct Channel {
    explicit Channel(double bytes_per_second) : bandwidth(bytes_per_second) {}
    double bandwidth;                    // 0: no limit
    double free = 0, free_of_small = 0;  // when the last copy leaves it

    [[nodiscard]] double seconds(double latency, int64_t bytes) const {
      return latency + (bandwidth > 0 ? static_cast<double>(bytes) / bandwidth : 0);
    }
    double serve(int64_t bytes, double latency, double ready) {
      const double time = seconds(latency, bytes);
      if (bytes > small) return free = std::max(ready, free) + time;
      free_of_small = std::max(ready, free_of_small) + time;
      free = std::max(free > ready ? free + time : 0, free_of_small);
      return free_of_small;
    }
  };

  struct Path {
    double latency;
    std::span<const uint32_t> channels;
  };
  [[nodiscard]] Path path_of(int32_t source, int32_t target) const {
    const size_t pair = static_cast<size_t>(source) * devices_ + static_cast<size_t>(target);
    return {latencies_[pair],
            std::span(path_channels_).subspan(begins_[pair], begins_[pair + 1] - begins_[pair])};
  }

  size_t devices_;
  std::vector<Channel> channels_;
  // By source * devices_ + target, as in tandem_topology.
  std::vector<double> latencies_;
  std::vector<uint32_t> begins_, path_channels_;
};

}  // namespace tandem::timing
