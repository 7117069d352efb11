#include "core/device/find_topology.h"

#include "core/base/error.h"
#include "core/base/strings.h"
#include "core/plugin/host.h"

namespace tandem {

std::shared_ptr<const Topology> find_topology(const Machine& machine) {
  if (machine.backend().find_topology == nullptr || machine.device_count() < 2) return nullptr;
  const tandem_topology* found = nullptr;
  check(machine.backend().find_topology(machine.handle(), &found),
        fmt::format("the links of {} devices", machine.kind()));
  if (found == nullptr) return nullptr;
  auto topology = std::make_shared<Topology>();
  topology->file = fmt::format("links of the {} devices", machine.kind());
  for (int device = 0; device < machine.device_count(); ++device) {
    topology->devices.push_back(fmt::format("{}{}", machine.kind(), device));
    topology->speeds.push_back(1);
  }
  for (uint32_t i = 0; i < found->channel_count; ++i) {
    const bool has_name = found->channel_names != nullptr && found->channel_names[i] != nullptr;
    topology->channels.push_back(
        {has_name ? found->channel_names[i] : fmt::format("channel {}", i), found->bandwidths[i]});
  }
  const auto pairs =
      static_cast<size_t>(machine.device_count()) * static_cast<size_t>(machine.device_count());
  for (size_t pair = 0; pair < pairs; ++pair) {
    topology->paths.push_back({found->latencies[pair],
                               {found->path_channels + found->path_begins[pair],
                                found->path_channels + found->path_begins[pair + 1]}});
  }
  require_sound(*topology);
  return topology;
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
    throw error("{}: there is no way from {} to {}", topology.file,
                topology.devices[pair / devices], topology.devices[pair % devices]);
  }
}

std::string source_text(const Topology& topology) {
  if (!topology.text.empty()) return "the topology " + topology.file;
  return "the " + topology.file + " as they tell them";
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

}  // namespace tandem
