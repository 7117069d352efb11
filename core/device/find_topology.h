// What the hardware says of the links between a machine's devices.
#pragma once

#include <memory>
#include <string>

#include "core/device/machine.h"

namespace tandem {

// Its text is "", as nobody wrote it. Null where the backend knows nothing of links, or there is
// one device. Error where it fails, or tells what makes no sense.
[[nodiscard]] std::shared_ptr<const Topology> find_topology(const Machine& machine);

}  // namespace tandem
