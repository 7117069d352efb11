#include "core/schedule/strategies/common/fastest_variant.h"

#include <algorithm>
#include <optional>

#include "core/base/error.h"
#include "core/base/text/strings.h"
#include "core/schedule/cost/step_model.h"
#include "core/schedule/plan/recompute.h"

namespace tandem {
namespace {

// On the fastest of the devices.
double min_seconds(const Strategy& strategy, const StrategyInputs& inputs) {
  double speed = 1;
  if (inputs.topology != nullptr) {
    for (const double one : inputs.topology->speeds) speed = std::max(speed, one);
  }
  return strategy.min_seconds(inputs) / speed;
}

struct Trial {
  bool is_possible = false;
  std::optional<double> seconds;  // of a step; nothing if it cannot be less than `best`
};

Trial try_variant(const Strategy& strategy, const StrategyInputs& inputs, double best) {
  try {
    const bool has_bound = best > 0 && strategy.min_seconds != nullptr;
    if (has_bound && min_seconds(strategy, inputs) >= best) return {true, std::nullopt};
    return {true, simulated_step_seconds(inputs, strategy.build(inputs))};
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

double simulated_step_seconds(const StrategyInputs& inputs, const Plan& plan) {
  const auto seconds = [&](const Plan& simulated) {
    const StepModel model(*inputs.net, simulated, *inputs.costs, inputs.link, inputs.topology);
    return model.in_order(model.given_order()).step_seconds;
  };
  if (!inputs.recomputes) return seconds(plan);
  Plan changed = plan;
  recompute_activations(changed, *inputs.net);
  return seconds(changed);
}

FastestVariant fastest_variant(const Strategy& strategy, const StrategyInputs& inputs) {
  FastestVariant result{inputs.options, ""};
  if (!strategy.defaults_to_fastest_variant) return result;
  const std::vector<StrategyVariant> variants = strategy.variants(inputs);
  if (variants.size() < 2) return result;
  StrategyInputs tried = inputs;
  tried.micro_batches_per_step = 1;  // so that every simulated step has an update
  double best = 0;
  std::string chosen, others;
  for (const StrategyVariant& variant : variants) {
    tried.options = variant.options;
    const auto [is_possible, seconds] = try_variant(strategy, tried, best);
    if (!is_possible) continue;
    const std::string name = variant.label + (seconds ? " " + human_seconds(*seconds) : " slower");
    if (seconds && (best == 0 || *seconds < best)) {
      if (best > 0) others += (others.empty() ? "" : ", ") + chosen;
      best = *seconds;
      result.options = variant.options;
      chosen = name;
    } else {
      others += (others.empty() ? "" : ", ") + name;
    }
  }
  if (!others.empty())
    result.note = fmt::format("the fastest on sim: {} a step ({})", chosen, others);
  return result;
}

}  // namespace tandem
