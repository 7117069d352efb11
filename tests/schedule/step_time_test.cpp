// The step that `sim` takes for a plan, against the formulas of docs/design/strategies.md §0 and
// §1.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "core/schedule/builder/plan_builder.h"
#include "core/schedule/plan/buffers.h"
#include "core/schedule/strategies/common/fastest_variant.h"
#include "core/schedule/strategies/data_parallel/parts.h"
#include "tests/schedule/plan_checks.h"
#include "tests/schedule/simulate.h"

namespace tandem::test {
namespace {

// a 9 ms, b 4 ms, c 10 ms. The FC gradients are ready before fc1's backward_data, so this is free
// here: b ends where m may begin.
constexpr double a = 9e-3, b = 4e-3, c = 10e-3;
CostTable hand_made(const Net& net) {
  CostTable costs;
  for (const Layer& layer : net.layers) {
    for (const char* pass : {" forward", " backward_data", " backward_weights"}) {
      costs.set(layer.name + pass, {0, 0, 0});
    }
  }
  for (const char* key : {"add", "update", "check"}) costs.set(key, {0, 0, 0});
  costs.set("conv1 forward", {3e-3, 0, 0});
  costs.set("conv2 forward", {4e-3, 0, 0});
  costs.set("fc1 forward", {2e-3, 0, 0});
  costs.set("fc2 backward_weights", {1e-3, 0, 0});
  costs.set("fc2 backward_data", {1e-3, 0, 0});
  costs.set("fc1 backward_weights", {2e-3, 0, 0});
  costs.set("conv2 backward_weights", {3e-3, 0, 0});
  costs.set("conv2 backward_data", {3e-3, 0, 0});
  costs.set("conv1 backward_weights", {4e-3, 0, 0});
  return costs;
}

struct Times {
  double m = 0, n = 0, broadcast = 0;
};

// A link on which the FC gradients of all devices take `m` seconds.
StrategyInputs inputs_with(const Net& net, const CostTable& costs, int devices, double m,
                           Times* times) {
  StrategyInputs inputs = inputs_of(net, devices);
  inputs.costs = &costs;
  inputs.options["split"] = "fc1";
  inputs.options["hidden_broadcast"] = false;
  const Parts parts = parts_at(net, net.find_layer("fc1"));
  const auto bytes = [&](const std::vector<int>& weights) {
    return static_cast<double>((devices - 1) * total_bytes(weight_ranges(net, weights)));
  };
  inputs.link.bandwidth = bytes(parts.fc_weights) / m;
  times->m = m;
  times->n = bytes(parts.conv_weights) / inputs.link.bandwidth;
  times->broadcast =
      static_cast<double>((devices - 1) * buffers::weight_bytes(net)) / inputs.link.bandwidth;
  return inputs;
}

class StepTime : public testing::TestWithParam<double> {};
INSTANTIATE_TEST_SUITE_P(TransfersBelowNearAndAboveTheConvPart, StepTime,
                         testing::Values(0.3 * c, c, 3 * c));

TEST_P(StepTime, OfTwoPhaseIsTheFormula) {
  const Net net = small_net(8);
  const CostTable costs = hand_made(net);
  Times times;
  const StrategyInputs inputs = inputs_with(net, costs, 2, GetParam(), &times);
  const double formula = a + b + std::max(c, times.m) + times.n + times.broadcast;
  EXPECT_NEAR(step_on_sim("two_phase", inputs), formula, 1e-9);
  EXPECT_NEAR(simulated_step_seconds(inputs, build_plan("two_phase", inputs)), formula, 1e-9);
}

TEST_P(StepTime, OfSequentialIsTheSum) {
  const Net net = small_net(8);
  const CostTable costs = hand_made(net);
  Times times;
  StrategyInputs inputs = inputs_with(net, costs, 2, GetParam(), &times);
  inputs.options.erase("hidden_broadcast");  // not an option of sequential
  const double gradients = times.broadcast;  // the whole array, too
  EXPECT_NEAR(step_on_sim("sequential", inputs), a + b + c + gradients + times.broadcast, 1e-9);
}

TEST_P(StepTime, WithHiddenBroadcastIsAsPredicted) {
  const Net net = small_net(8);
  const CostTable costs = hand_made(net);
  Times times;
  StrategyInputs inputs = inputs_with(net, costs, 2, GetParam(), &times);
  const double plain = step_on_sim("two_phase", inputs);
  inputs.options["hidden_broadcast"] = true;
  const double hidden = step_on_sim("two_phase", inputs);
  EXPECT_NEAR(hidden, simulated_step_seconds(inputs, build_plan("two_phase", inputs)), 1e-9);
  EXPECT_LE(hidden, plain + 1e-9);
}

// With plain broadcast the first devices are served first and so may send first.
TEST_P(StepTime, OnFourDevicesIsAtMostTheFormula) {
  const Net net = small_net(8);
  const CostTable costs = hand_made(net);
  Times times;
  StrategyInputs inputs = inputs_with(net, costs, 4, GetParam(), &times);
  const double formula = a + b + std::max(c, times.m) + times.n + times.broadcast;
  const double step = step_on_sim("two_phase", inputs);
  EXPECT_LE(step, formula + 1e-9);
  EXPECT_GE(step, formula - times.broadcast);
  inputs.options.erase("hidden_broadcast");  // not an option of sequential
  EXPECT_LT(step, step_on_sim("sequential", inputs));
}

}  // namespace
}  // namespace tandem::test
