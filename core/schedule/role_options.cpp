#include "core/schedule/role_options.h"

#include "core/base/error.h"

namespace tandem {

void demand_known_roles(const std::string& strategy, const RoleOptions& roles) {
  const auto only = [&](bool is_set, const char* option, const char* of) {
    if (!is_set || strategy == of) return;
    throw error("{} is an option of strategy '{}'; strategy '{}' has none of that name", option, of,
                strategy);
  };
  only(roles.conv_devices != 0, "--conv-devices", "hybrid");
  only(roles.fc_devices != 0, "--fc-devices", "hybrid");
  only(roles.quota != 0, "--quota", "fc_parallel");
  only(roles.eager, "--eager", "fc_parallel");
  only(!roles.fc_memory.empty(), "--fc-memory", "hybrid");
  only(!roles.groups.empty(), "--groups", "asymmetric");
  only(!roles.slices.empty(), "--slices", "asymmetric");
}

}  // namespace tandem
