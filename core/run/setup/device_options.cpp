#include "core/run/setup/device_options.h"

#include "core/schedule/cost/topology_file.h"

namespace tandem {

MachineOptions machine_options(const DeviceOptions& options) {
  MachineOptions machine;
  if (options.threads < 0) {
    throw error("--threads {}: there must be at least 1 (or 0 for all cores)", options.threads);
  }
  machine.threads = options.threads;
  if (!options.link.empty()) machine.link = parse_link(options.link);
  if (!options.topology.empty()) {
    if (!options.link.empty()) {
      throw error("--link {} and --topology {}: both define the speed of links; give one of them",
                  options.link, options.topology);
    }
    machine.topology = std::make_shared<Topology>(read_topology(options.topology));
  }
  machine.delay_seed = options.delay_seed;
  machine.delay_seconds = options.delay_seed != 0 ? options.delay_seconds : 0;
  return machine;
}

}  // namespace tandem
