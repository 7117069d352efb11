// A run of more than a day says so before its first step.
#pragma once

#include "core/run/setup/train_setup.h"
#include "core/session/session.h"

namespace tandem {

// Whether the run's operations may take a device over a day. The same on all ranks.
[[nodiscard]] bool may_take_days(const TrainSetup& setup, const Session& session);

// "the run will take about 24 days: ...", of so many steps that are left; "" for at most a day.
// Measures a few steps, after which the session's weights are of no use. Called by all ranks.
[[nodiscard]] std::string long_run_text(const TrainSetup& setup, int64_t steps_left,
                                        Session& session);

}  // namespace tandem
