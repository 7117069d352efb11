// The links between a machine's devices as its backend finds them.
#pragma once

#include <memory>
#include <string>

#include "core/device/machine.h"

namespace tandem {

// Its `text` is "". Null if the backend knows nothing of links, or there is one device. Error if
// the backend fails or returns a topology that is not sound.
[[nodiscard]] std::shared_ptr<const Topology> find_topology(const Machine& machine);

}  // namespace tandem
