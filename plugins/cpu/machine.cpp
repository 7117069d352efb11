#include "plugins/cpu/machine.h"

#include <algorithm>

#include "plugins/cpu/hardware.h"
#include "plugins/cpu/team.h"
#include "plugins/machine_options.h"

namespace tandem::cpu {

namespace {

// All have the same number, so that they compute the same bits, and those of ranks that divide the
// cores. Threads that cannot be divided are left.
std::vector<int32_t> share_threads(int32_t threads, int32_t devices) {
  return std::vector<int32_t>(static_cast<size_t>(devices), std::max(1, threads / devices));
}

}  // namespace

Machine::Machine(const tandem_machine_options& given)
    : options_(sdk::checked(given, "cpu")), links_(options_, 0) {
  const tandem_machine_options& options = options_;
  if (options.threads < 0 || options.threads > 4096) {
    throw sdk::invalid(options.threads, " threads; there can be 1 to 4096, 0 means all cores");
  }
  threads_ =
      share_threads(options.threads > 0 ? options.threads : core_count(), options.device_count);
  calm_idle_teams();
  options_.ordinals = nullptr;  // borrowed, and not needed here
  options_.topology = nullptr;
}

void Machine::require_device(int32_t device) const {
  if (device < 0 || device >= device_count()) {
    throw sdk::invalid("device ", device, " of a machine of ", device_count());
  }
}

double Machine::reserve_link(int32_t source, int32_t target, int64_t bytes, double start) {
  if (!links_.are_slow() || !timing::uses_links(source, target)) return start;
  const std::lock_guard lock(links_mutex_);
  return links_.reserve(source, target, bytes, start);
}

}  // namespace tandem::cpu
