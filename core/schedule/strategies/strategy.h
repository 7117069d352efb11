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
#include "core/schedule/strategies/option_table.h"

namespace tandem {

// One way in which the options that were not given may be completed.
struct StrategyVariant {
  std::string label;  // for the user: "--reduce ring"; "" if there is one way only
  StrategyOptions options;
};

struct Strategy {
  std::string name;
  std::string summary;                  // one line
  std::vector<StrategyOption> options;  // those of its OptionTable
  // Tasks in a valid order; build_plan() derives what they wait for. Plan::options says with which
  // options. Error for what the strategy cannot do with the net, the devices or the options.
  std::function<Plan(const StrategyInputs&)> build;
  // What `auto` and `plan --strategy all` try, from the options given; reads no net and no costs.
  // Empty: the options as they are.
  std::function<std::vector<StrategyVariant>(const StrategyInputs&)> variants{};
  // The default is the variant with the shortest simulated step (fastest_variant.h).
  bool defaults_to_fastest_variant = false;
  // Seconds of compute that no order of a step's tasks can pass, to be had sooner than a plan; it
  // leaves out variants that cannot be the fastest. Errors: those of build(). May be empty.
  std::function<double(const StrategyInputs&)> least_seconds{};
  // Whether it chooses by the costs, with these options, what a run then keeps; a run measures them
  // first. Empty: no.
  std::function<bool(const StrategyOptions&)> wants_measured_costs{};
  // The sets of options that tests and check_lossless hold against one device: every legal way on
  // so many devices. Empty where there is none.
  std::function<std::vector<StrategyOptions>(int devices)> lossless_cases;
};

}  // namespace tandem
