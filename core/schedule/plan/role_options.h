// Which device does what, in strategies whose devices have different roles. What is not set is
// chosen by `auto`, by simulated_default() or by the strategy; the plan holds what was chosen.
#pragma once

#include <string>

namespace tandem {

struct RoleOptions {
  int conv_devices = 0, fc_devices = 0;  // of hybrid; 0: chosen
  std::string groups;                    // of asymmetric: "E=0,2/W=1,3"; "": chosen
  std::string slices;                    // of asymmetric: "all", "large", "none"; "": chosen
  int quota = 0;                         // of fc_parallel; 0: chosen
  bool eager = false;                    // of fc_parallel
  std::string fc_memory;                 // of hybrid: "device" or "extended"; "": device
  friend bool operator==(const RoleOptions&, const RoleOptions&) = default;
};

}  // namespace tandem
