#include "core/schedule/strategies/fc_parallel/fc_parallel.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "core/schedule/strategies/composed/composition.h"

namespace tandem {
namespace {

Plan build_fc_parallel(const StrategyInputs& inputs) {
  Composition composition{"fc_parallel"};
  for (FcChain& chain : chains_over_all_devices(inputs)) {
    composition.divided.push_back({std::move(chain), inputs.devices});
  }
  const FcParallelOptions options =
      completed(fc_parallel_options().read(inputs.options), inputs.devices);
  composition.rounds = options;
  Plan plan = compose(inputs, composition);
  plan.options = fc_parallel_options().write(options);
  std::string layers;
  for (const auto& [chain, group] : composition.divided) {
    layers += fmt::format("{}'{}' to '{}'", layers.empty() ? "" : ", ",
                          inputs.net->layer(chain.linear.front()).name,
                          inputs.net->layer(chain.linear.back()).name);
  }
  plan.notes.push_back(fmt::format(
      "{} divided by neurons over {} devices, {} of {} gradient parts a round{}", layers,
      inputs.devices, options.quota, inputs.devices, options.eager ? ", sent after each" : ""));
  return plan;
}

// In each round of a layer every device sends to every other one. Of many devices small quotas have
// millions of messages, which take minutes and gigabytes to simulate: those are not tried.
bool has_few_messages(int64_t devices, int64_t quota) {
  constexpr int64_t max_of_a_layer = int64_t{1} << 17;
  return (devices + quota - 1) / quota * devices * devices <= max_of_a_layer;
}

std::vector<StrategyVariant> fc_parallel_variants(const StrategyInputs& inputs) {
  FcParallelOptions options = fc_parallel_options().read(inputs.options);
  std::vector<StrategyVariant> result;
  if (options.quota == 0) {
    for (int quota = inputs.devices; quota >= 1; quota /= 2) {
      if (options.eager && quota == inputs.devices) continue;
      if (!result.empty() && !has_few_messages(inputs.devices, quota)) break;
      result.push_back(
          {fmt::format("--quota {}", quota), fc_parallel_options().write({quota, options.eager})});
    }
  }
  if (result.size() < 2) result = {{"", inputs.options}};
  return result;
}

// A device's share of all layers but the element-wise ones of the chain; linear layers as often as
// their rounds repeat them.
double fc_parallel_least_seconds(const StrategyInputs& inputs) {
  const Net& net = *inputs.net;
  std::map<int, int> repetitions;  // by divided layer; 0: element-wise
  for (const FcChain& chain : chains_over_all_devices(inputs)) {
    const BackwardRounds rounds(net, chain, shares_of(net.batch, inputs.devices),
                                fc_parallel_options().read(inputs.options));
    for (const int layer : chain.layers) repetitions[layer] = 0;
    for (const int layer : chain.linear) repetitions[layer] = rounds.repetitions(layer);
  }
  double sum = 0;
  for (int layer = 0; layer < static_cast<int>(net.layers.size()); ++layer) {
    const auto divided = repetitions.find(layer);
    const bool is_divided = divided != repetitions.end();
    if (is_divided && divided->second == 0) continue;
    const int64_t rows = is_divided ? net.batch : share(net.batch, inputs.devices, 0).count();
    const int slices = is_divided ? inputs.devices : 1;
    const auto seconds = [&](LayerPass pass, int times) {
      return times * inputs.costs->pass_seconds(net, layer, pass, rows) / slices;
    };
    sum += seconds(LayerPass::forward, 1);
    if (!net.layer(layer).has_backward()) continue;
    sum += seconds(LayerPass::backward, is_divided ? divided->second : 1);
  }
  return sum;
}

std::vector<StrategyOptions> fc_parallel_lossless_cases(int devices) {
  std::vector<StrategyOptions> cases;
  for (int quota = 1; devices > 1 && quota <= devices; ++quota) {
    for (const bool eager : {false, true}) {
      if (eager && quota == devices) continue;
      cases.push_back(fc_parallel_options().write({quota, eager}));
    }
  }
  return cases;
}

}  // namespace

const OptionTable<FcParallelOptions>& fc_parallel_options() {
  static const auto table = [] {
    StrategyOption quota = count_option("--quota",
                                        "parts of the activation gradients that a round of the "
                                        "backward pass waits for (default: the "
                                        "fastest on sim)");
    quota.fits_devices = true;
    StrategyOption eager = flag_option(
        "--eager",
        "send activation gradients in every round of the backward pass, not once after the last");
    eager.resets = {"quota"};
    eager.fits_devices = true;
    return OptionTable<FcParallelOptions>()
        .add(std::move(quota), &FcParallelOptions::quota)
        .add(std::move(eager), &FcParallelOptions::eager);
  }();
  return table;
}

Strategy fc_parallel_strategy() {
  Strategy strategy;
  strategy.name = "fc_parallel";
  strategy.summary = "fully connected layers are divided by neurons, activations travel";
  strategy.options = fc_parallel_options().options();
  strategy.build = &build_fc_parallel;
  strategy.variants = &fc_parallel_variants;
  strategy.defaults_to_fastest_variant = true;
  strategy.min_seconds = &fc_parallel_least_seconds;
  strategy.lossless_cases = &fc_parallel_lossless_cases;
  return strategy;
}

}  // namespace tandem
