// The options of a run's session, from its setup and from measured costs.
#pragma once

#include "core/run/setup/setup.h"
#include "core/session/session.h"

namespace tandem {

// Where the strategy chooses by costs and there are several devices, a few steps are measured
// first. With strategy `auto`, the strategy is chosen and written into the setup's record, and the
// table of forecasts into its messages. The bits of a run depend on neither.
// `ranks`: the job of several processes, or null.
[[nodiscard]] SessionOptions session_options(Registry& registry, TrainSetup& setup,
                                             const Communicator* ranks = nullptr);

}  // namespace tandem
