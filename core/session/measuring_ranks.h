// The job whose ranks measure steps together.
#pragma once

#include <memory>

#include "core/device/communicator.h"
#include "core/plugin/registry.h"
#include "core/ranks/ranks.h"
#include "core/session/session.h"

namespace tandem {

// Opens it as open_ranks() does, null for a process that was started alone, and adds what a rank
// needs to the options of its session, which have the machine of DeviceOptions. Errors: what only
// one process can do.
[[nodiscard]] std::unique_ptr<Communicator> open_measuring_ranks(const Registry& registry,
                                                                 double watchdog_seconds,
                                                                 const GivenOptions& given,
                                                                 SessionOptions& options);

}  // namespace tandem
