#include "core/cli/commands.h"

namespace tandem::cli {
void add_role_options(CLI::App& command, RoleOptions& roles) {
  command
      .add_option("--conv-devices", roles.conv_devices,
                  "hybrid: devices for the convolutions (default: by the costs)")
      ->check(at_least_one());
  command
      .add_option("--fc-devices", roles.fc_devices,
                  "hybrid: devices for the fully connected layers (default: by the costs)")
      ->check(at_least_one());
  command.add_option("--groups", roles.groups,
                     "asymmetric: the devices that compute errors and those that compute weights, "
                     "as E=0,2/W=1,3 (default: by the topology, else the sizes that are fastest by "
                     "the costs)");
  command.add_option(
      "--slices", roles.slices,
      "asymmetric: layers whose weights the devices of W divide among them, the others "
      "whole here and there: all, large or none (default: by the costs)");
  command
      .add_option("--quota", roles.quota,
                  "fc_parallel: error pieces that a round of the backward pass waits for "
                  "(default: all, one of each device; with --eager half of them)")
      ->check(at_least_one());
  command.add_flag("--eager", roles.eager,
                   "fc_parallel: send errors in every round of the backward pass, not once behind "
                   "the last");
  command.add_option("--fc-memory", roles.fc_memory,
                     "hybrid: where the FC devices keep the solver's state: device (default), or "
                     "extended, a memory-mapped file in TMPDIR (cpu) or pinned host memory");
}

}  // namespace tandem::cli
