#include "core/device/find_topology.h"

#include "core/base/error.h"
#include "core/plugin/host.h"

namespace tandem {

std::shared_ptr<const Topology> find_topology(const Machine& machine) {
  if (machine.backend().links == nullptr || machine.device_count() < 2) return nullptr;
  const tandem_topology* found = nullptr;
  check(machine.backend().links->find_topology(machine.handle(), &found),
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

}  // namespace tandem
