// What `tandem plan` prints of plans and forecasts, as lines of text and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "core/schedule/cost/bounds.h"
#include "core/schedule/plan/memory_plan.h"
#include "core/session/forecast.h"

namespace tandem::cli {

// Lines with their ends.
[[nodiscard]] std::string links_text(const MachineOptions& machine);
// How near a step of `step` seconds is to the bounds that no order of its tasks can beat.
[[nodiscard]] std::string bounds_text(const StepBounds& bounds, const ChainBound& chain,
                                      double step);
[[nodiscard]] std::string memory_text(const MemoryPlan& memory);

[[nodiscard]] nlohmann::json to_json(const Forecast& forecast);
[[nodiscard]] nlohmann::json tasks_json(const Plan& plan);

}  // namespace tandem::cli
