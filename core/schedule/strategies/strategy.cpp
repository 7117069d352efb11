#include "core/schedule/strategies/strategy.h"

#include "core/base/error.h"
#include "core/base/strings.h"
#include "core/schedule/plan/dependencies.h"
#include "core/schedule/strategies/data_parallel/parts.h"
#include "core/schedule/strategies/strategies.h"
#include "core/schedule/strategies/strategy_options.h"

namespace tandem {

namespace {

StrategyInputs completed(const StrategyInputs& inputs) {
  static const CostTable unmeasured;
  StrategyInputs result = inputs;
  if (result.costs == nullptr) result.costs = &unmeasured;
  return result;
}

Plan finished(Plan plan) {
  derive_dependencies(plan);
  validate(plan);
  return plan;
}

}  // namespace

const std::vector<Strategy>& strategies() {
  static const std::vector<Strategy> all{
      {"sequential", "nothing overlaps: backward, send all gradients, update, broadcast",
       &build_sequential},
      {"two_phase", "FC gradients travel while the convolutions go backward", &build_two_phase},
      {"layerwise", "every layer's gradient travels as soon as it exists", &build_layerwise,
       &layerwise_variants},
      {"hybrid", "some devices have the convolutions, others the fully connected layers",
       &build_hybrid, &hybrid_variants, &hybrid_least_seconds},
      {"asymmetric", "one group of devices computes errors, the other weights", &build_asymmetric},
      {"fc_parallel", "fully connected layers are divided by neurons, activations travel",
       &build_fc_parallel, &fc_parallel_variants, &fc_parallel_least_seconds},
  };
  return all;
}

Plan build_plan(const std::string& strategy, const StrategyInputs& inputs) {
  std::vector<std::string> names;
  for (const Strategy& known : strategies()) {
    if (known.name == strategy) {
      require_options_of(strategy, inputs.options);
      require_known_split(*inputs.net, inputs.options.split);
      require_weights_to_train(*inputs.net);
      return finished(known.build(completed(inputs)));
    }
    names.push_back(known.name);
  }
  throw error("unknown strategy '{}'{}; there are: {}, and auto", strategy,
              did_you_mean(strategy, names), fmt::join(names, ", "));
}

Plan build_testing_plan(const StrategyInputs& inputs) {
  return finished(build_testing(completed(inputs)));
}

}  // namespace tandem
