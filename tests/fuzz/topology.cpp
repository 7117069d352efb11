// Topologies: what is accepted has a path for every pair of devices.
#include "core/device/topology.h"

#include "core/schedule/cost/topology_file.h"
#include "tests/fuzz/targets.h"

namespace tandem::fuzz {

void topology(std::string_view bytes) {
  Topology read;
  const std::string text(bytes);
  if (!accepts([&] { read = parse_topology(text, "machine.topology"); })) return;
  if (!accepts([&] { require_sound(read); })) fail("a topology that is not sound");
  (void)links_table(read);
}

}  // namespace tandem::fuzz
