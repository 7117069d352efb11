#include "core/session/measuring_ranks.h"

#include "core/base/error.h"
#include "core/device/parse.h"
#include "core/ranks/rank_links.h"

namespace tandem {

std::unique_ptr<Communicator> open_measuring_ranks(const Registry& registry,
                                                   double watchdog_seconds,
                                                   const GivenOptions& given,
                                                   SessionOptions& options) {
  auto ranks = open_ranks(registry, 0, watchdog_seconds, given);
  if (ranks == nullptr) return ranks;
  try {
    const LinkSpec& link = options.machine.link;
    if (link.bandwidth > 0 || link.latency > 0 || options.machine.topology != nullptr) {
      throw error(
          "--link and --topology are for one process, not for several ranks: their messages have "
          "real links");
    }
    if (options.strategy == "auto") {
      throw error("--strategy auto is for one process here, not for several ranks: name one");
    }
    require_messages_from(registry, options.devices);
    const DeviceSpec spec = parse_devices(options.devices, registry);
    options.rank_topology = measured_topology(*ranks, registry, spec, options.machine.threads);
  } catch (const Error&) {
    ranks->abort();
    if (ranks->rank() > 0) let_root_report();
    throw;
  }
  options.ranks = ranks.get();
  options.executor.watchdog_seconds = watchdog_seconds;
  options.finds_links = false;
  if (options.machine.threads == 0) options.machine.threads = ranks->hosts().processors;
  return ranks;
}

}  // namespace tandem
