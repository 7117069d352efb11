// The options that a backend opens a machine with, checked for what every backend refuses.
#pragma once

#include <algorithm>
#include <cstring>

#include "plugins/sdk.h"

namespace tandem::sdk {

inline void require_not_negative(const char* what, double value) {
  if (!(value >= 0)) throw invalid(what, " ", value, " must not be negative");
}

inline void require_sound(const tandem_topology& topology, int32_t devices) {
  for (uint32_t i = 0; i < topology.channel_count; ++i) {
    if (topology.bandwidths[i] > 0) continue;
    throw invalid("channel ", i, " has a bandwidth of ", topology.bandwidths[i]);
  }
  const auto pairs = static_cast<size_t>(devices) * static_cast<size_t>(devices);
  for (size_t pair = 0; pair < pairs; ++pair) {
    require_not_negative("latency", topology.latencies[pair]);
  }
  for (uint32_t i = topology.path_begins[0]; i < topology.path_begins[pairs]; ++i) {
    if (topology.path_channels[i] < topology.channel_count) continue;
    throw invalid("channel ", topology.path_channels[i], " of ", topology.channel_count);
  }
}

// A copy of `given` in which the fields that an older host does not know are zero. Throws Refusal
// if the number of devices, a speed or a time is out of range; `kind` is the backend's.
inline tandem_machine_options checked(const tandem_machine_options& given, const char* kind) {
  constexpr int32_t max_devices = 1024;
  tandem_machine_options options{};
  std::memcpy(&options, &given, std::min<size_t>(given.struct_size, sizeof options));
  options.struct_size = sizeof options;
  if (options.device_count < 1 || options.device_count > max_devices) {
    throw invalid(options.device_count, " ", kind, " devices; there can be 1 to ", max_devices);
  }
  require_not_negative("link bandwidth", options.link_bandwidth);
  require_not_negative("link latency", options.link_latency);
  require_not_negative("delay", options.delay_seconds);
  if (options.topology != nullptr) require_sound(*options.topology, options.device_count);
  return options;
}

}  // namespace tandem::sdk
