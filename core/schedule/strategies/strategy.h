// A strategy: a pure function from (net, devices, costs) to a plan. One file each under
// strategies/; they share the emitters of plan_builder.h and never touch layers, streams or the
// trainer.
#pragma once

#include <string>
#include <vector>

#include "core/model/net.h"
#include "core/schedule/builder/strategy_inputs.h"
#include "core/schedule/cost/cost_table.h"
#include "core/schedule/plan/plan.h"

namespace tandem {

// One way in which a strategy's options may be completed: by `auto`, and by simulated_default().
struct StrategyVariant {
  std::string label;  // for the user: "--reduce ring"; "" if there is one way only
  StrategyOptions options;
};

struct Strategy {
  std::string name;
  std::string help;  // one line
  Plan (*build)(const StrategyInputs&);
  // The options that were told, completed: by `auto`, and by simulated_default(). nullptr: the
  // options as they are.
  std::vector<StrategyVariant> (*variants)(const StrategyInputs&) = nullptr;
  // What no order of a step's tasks can pass, seconds of compute; quicker to have than a plan. With
  // it a Session takes the fastest of the variants where nothing is told: simulated_default().
  // Errors: those of the plan's options.
  double (*least_seconds)(const StrategyInputs&) = nullptr;
};

// sequential, two_phase, layerwise, hybrid, asymmetric, fc_parallel
[[nodiscard]] const std::vector<Strategy>& strategies();
// Builds, derives dependencies, validates. Error with near names for an unknown strategy, for an
// option that is not the strategy's, for fewer rows than devices, and for what the strategy cannot
// do with the net.
[[nodiscard]] Plan build_plan(const std::string& strategy, const StrategyInputs& inputs);
// Forward only, data-parallel, weights broadcast first; scalars are summed on device 0.
[[nodiscard]] Plan build_testing_plan(const StrategyInputs& inputs);

// docs/design/strategies.md §1, the AlexNet-like test.
struct AlexNetTest {
  bool alexnet_like = false;
  std::string p;            // the layer where backward time passes the first threshold
  double time_share = 0;    // t/T at p
  double weight_share = 0;  // v/V
  std::string explanation;  // with both numbers and thresholds, for the user
};
[[nodiscard]] AlexNetTest test_alexnet_like(const Net& net, const CostTable& costs,
                                            const StrategyOptions& options);

}  // namespace tandem
