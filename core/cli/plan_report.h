// What `tandem plan` prints of plans and forecasts, as lines of text and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "core/cli/print.h"
#include "core/schedule/cost/bounds.h"
#include "core/schedule/plan/memory_plan.h"
#include "core/session/forecast.h"

namespace tandem::cli {

// What is known of a plan's step before it runs.
struct PlannedStep {
  int devices = 1;
  MemoryPlan memory;
  std::string refusal;  // memory_on()'s
  Measurement predicted;
  double alone = 0;  // seconds without copies between devices; 0: not known
  CostSources sources;
  StepBounds bounds;
  ChainBound chain;
};

// Lines with their ends.
[[nodiscard]] std::string links_text(const MachineOptions& machine);
// How near a step of `step` seconds is to the bounds that no order of its tasks can beat.
[[nodiscard]] std::string bounds_text(const StepBounds& bounds, const ChainBound& chain,
                                      double step);
[[nodiscard]] std::string memory_text(const MemoryPlan& memory);

[[nodiscard]] json to_json(const ForecastList& list);
[[nodiscard]] json to_json(const PlannedStep& step, const Plan& plan);

}  // namespace tandem::cli
