// The devices of a program as its user gives them, read.
#pragma once

#include "core/device/machine.h"
#include "include/tandem/devices.h"

namespace tandem {

// Throws Error for a value that is wrong, and for both a link and a topology.
[[nodiscard]] MachineOptions machine_options(const DeviceOptions& options);

}  // namespace tandem
