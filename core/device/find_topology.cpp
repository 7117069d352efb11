#include "core/device/machine.h"
#include "core/device/topology.h"

#include <cstddef>

#include "core/base/error.h"
#include "core/plugin/host.h"
#include "core/plugin/tables.h"

namespace tandem {
namespace {

// What the plugin's table says before its arrays are read.
void require_arrays(const tandem_topology& table, const std::string& file, size_t pairs) {
  constexpr size_t least =
      offsetof(tandem_topology, path_channels) + sizeof(tandem_topology::path_channels);
  if (table.struct_size < least) {
    throw error("{}: the table has a struct_size of {}, but it is at least {}", file,
                table.struct_size, least);
  }
  constexpr uint32_t max_channels = 1U << 20U;
  if (table.channel_count > max_channels) {
    throw error("{}: {} channels, but the most are {}", file, table.channel_count, max_channels);
  }
  for (const auto& [present, array] :
       {std::pair{table.channel_count == 0 || table.bandwidths != nullptr, "bandwidths"},
        {table.latencies != nullptr, "latencies"},
        {table.path_begins != nullptr, "path_begins"}}) {
    if (!present) throw error("{}: the table has no '{}'", file, array);
  }
  for (size_t pair = 0; pair < pairs; ++pair) {
    const uint32_t begin = table.path_begins[pair], end = table.path_begins[pair + 1];
    // A path passes each channel once at most.
    if (begin <= end && end - begin <= table.channel_count) continue;
    throw error("{}: path {} begins at {} and ends at {} of 'path_channels', with {} channels",
                file, pair, begin, end, table.channel_count);
  }
  if (table.path_begins[pairs] > table.path_begins[0] && table.path_channels == nullptr) {
    throw error("{}: the table has no 'path_channels'", file);
  }
}

}  // namespace

std::shared_ptr<const Topology> find_topology(const Machine& machine) {
  if (machine.backend().links == nullptr || machine.device_count() < 2) return nullptr;
  const tandem_topology* table = nullptr;
  check(machine.backend().links->find_topology(machine.handle(), &table),
        fmt::format("the links of {} devices", machine.kind()));
  if (table == nullptr) return nullptr;
  const tandem_topology found = covered_part(*table);
  auto topology = std::make_shared<Topology>();
  topology->file = fmt::format("links of the {} devices", machine.kind());
  const auto pairs = size_t(machine.device_count()) * size_t(machine.device_count());
  require_arrays(found, topology->file, pairs);
  for (int device = 0; device < machine.device_count(); ++device) {
    topology->devices.push_back(fmt::format("{}{}", machine.kind(), device));
    topology->speeds.push_back(1);
  }
  for (uint32_t i = 0; i < found.channel_count; ++i) {
    const bool has_name = found.channel_names != nullptr && found.channel_names[i] != nullptr;
    topology->channels.push_back(
        {has_name ? found.channel_names[i] : fmt::format("channel {}", i), found.bandwidths[i]});
  }
  for (size_t pair = 0; pair < pairs; ++pair) {
    topology->paths.push_back({found.latencies[pair],
                               {found.path_channels + found.path_begins[pair],
                                found.path_channels + found.path_begins[pair + 1]}});
  }
  require_sound(*topology);
  return topology;
}

}  // namespace tandem
