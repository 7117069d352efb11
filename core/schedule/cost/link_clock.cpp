#include "core/schedule/cost/link_clock.h"

#include <algorithm>

namespace tandem {

namespace {

// Copies of at most so many bytes pass between the pieces of larger ones.
constexpr int64_t small = 16 << 10;

}  // namespace

LinkClock::LinkClock(const LinkSpec& link, const Topology* topology)
    : link_(link), topology_(topology) {
  if (link_.bandwidth <= 0) link_.bandwidth = 4e9;
  if (topology == nullptr) return;
  for (const Topology::Channel& channel : topology->channels) {
    channels_.push_back({channel.bandwidth});
  }
}

const LinkClock::Way& LinkClock::way(int source, int target) const {
  const auto [found, is_new] = ways_.try_emplace({source, target});
  Way& way = found->second;
  if (!is_new) return way;
  if (topology_ == nullptr) {
    way = {link_.latency, {channels_.size()}};
    channels_.push_back({link_.bandwidth});
  } else {
    const Topology::Path& path = topology_->path(source, target);
    way = {path.latency, {path.channels.begin(), path.channels.end()}};
  }
  return way;
}

double LinkClock::seconds_alone(int source, int target, int64_t bytes) const {
  double most = 0;
  const Way& by = way(source, target);
  for (const size_t channel : by.channels) {
    most = std::max(most, by.latency + static_cast<double>(bytes) / channels_[channel].bandwidth);
  }
  return most;
}

double LinkClock::reserve(int source, int target, int64_t bytes, double ready) {
  double done = ready;
  const Way& by = way(source, target);
  for (const size_t number : by.channels) {
    Channel& channel = channels_[number];
    const double seconds = by.latency + static_cast<double>(bytes) / channel.bandwidth;
    if (bytes > small) {
      channel.free = std::max(ready, channel.free) + seconds;
      done = std::max(done, channel.free);
      continue;
    }
    channel.free_of_small = std::max(ready, channel.free_of_small) + seconds;
    channel.free =
        std::max(channel.free > ready ? channel.free + seconds : 0, channel.free_of_small);
    done = std::max(done, channel.free_of_small);
  }
  return done;
}

double LinkClock::free_for(int source, int target, int64_t bytes) const {
  const Way& by = way(source, target);
  const double alone = seconds_alone(source, target, bytes);
  double from = 0;
  for (const size_t number : by.channels) {
    const Channel& channel = channels_[number];
    const double seconds = by.latency + static_cast<double>(bytes) / channel.bandwidth;
    const double free = bytes > small ? channel.free : channel.free_of_small;
    from = std::max(from, free + seconds - alone);
  }
  return from;
}

}  // namespace tandem
