#include "core/cli/commands.h"

namespace tandem::cli {

void add_role_options(CLI::App& command, RoleOptions& roles) {
  command.add_option("--conv-devices", roles.conv_devices,
                     "hybrid: devices for the convolutions (default: by the costs)");
  command.add_option("--fc-devices", roles.fc_devices,
                     "hybrid: devices for the fully connected layers (default: by the costs)");
}

}  // namespace tandem::cli
