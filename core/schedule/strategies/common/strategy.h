// A strategy: a pure function from (net, devices, costs) to a plan, and everything that programs,
// records, documentation, tests and benchmarks need to know of it, in one object. Each strategy
// makes its object in its own file; built_in.cpp lists them. Strategies share the emitters of
// plan_builder.h and never touch layers, streams or the trainer.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/schedule/builder/strategy_inputs.h"
#include "core/schedule/plan/plan.h"
#include "core/schedule/strategies/common/option_table.h"

namespace tandem {

// One way to complete the options that were not given.
struct StrategyVariant {
  std::string label;  // for the user: "--reduce ring"; "" if there is one way only
  StrategyOptions options;
};

struct Strategy {
  std::string name;
  std::string summary;                  // one line
  std::vector<StrategyOption> options;  // of its OptionTable
  // Makes the tasks in a valid order; build_plan() derives their waits. Plan::options has the
  // options used. Error for a net, devices or options that the strategy does not support.
  std::function<Plan(const StrategyInputs&)> build;
  // The variants that `auto` and `plan --strategy all` try for the options given. Reads neither the
  // net nor the costs. Empty: only the options as given.
  std::function<std::vector<StrategyVariant>(const StrategyInputs&)> variants{};
  // The default is the variant with the shortest simulated step (fastest_variant.h).
  bool defaults_to_fastest_variant = false;
  // A lower bound of the step's seconds that is quicker to compute than a plan; variants that
  // cannot be the fastest are then not built. Errors: those of build(). May be empty.
  std::function<double(const StrategyInputs&)> min_seconds{};
  // Whether the strategy, with these options, makes choices by the costs; a run then measures the
  // costs first, and records the choices. Empty: no.
  std::function<bool(const StrategyOptions&)> wants_measured_costs{};
  // The sets of options for which tests and check_lossless compare the weights with one device's:
  // all that are valid on so many devices. Empty if there are none.
  std::function<std::vector<StrategyOptions>(int devices)> lossless_cases;
};

}  // namespace tandem
