// The step of layerwise on `sim` against what links and compute allow.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "core/schedule/strategies/common/buckets.h"
#include "tests/schedule/plan_checks.h"
#include "tests/schedule/simulate.h"

namespace tandem::test {
namespace {

// Compute takes `seconds` in all; nothing else takes any.
CostTable computing(const Net& net, double seconds) {
  CostTable costs;
  for (const Layer& layer : net.layers) {
    for (const char* pass : {" forward", " backward_data", " backward_weights"}) {
      costs.set(layer.name + pass, {0, 0, 0});
    }
  }
  for (const char* key : {"add", "update", "check", "input", "results"}) costs.set(key, {0, 0, 0});
  costs.set("conv1 forward", {seconds / 2, 0, 0});
  costs.set("conv1 backward_weights", {seconds / 2, 0, 0});
  return costs;
}

TEST(LayerwiseTime, OfARingIsItsLinksBoundWhereTheLinksAreSlow) {
  const Net net = small_net(16);
  const CostTable costs = computing(net, 1e-6);
  const double bytes = double(make_buckets(net, 1 << 20)[0].range.count());
  for (const int devices : {2, 3, 4, 8}) {
    StrategyInputs inputs = layerwise_inputs(net, devices, "ring", 1 << 20);
    inputs.costs = &costs;
    inputs.link.bandwidth = 1e6;
    const double bound = 2 * (devices - 1) * bytes / devices / inputs.link.bandwidth;
    const double step = step_on_sim("layerwise", inputs);
    EXPECT_GT(step, 0.99 * bound) << devices;
    EXPECT_LT(step, 1.03 * bound) << devices;
  }
}

TEST(LayerwiseTime, OfARingIsThatOfComputeWhereItHidesEverything) {
  const Net net = small_net(16);
  CostTable costs = computing(net, 0);
  // The first layers take long forward and backward, so everything else has time.
  costs.set("fc1 forward", {10e-3, 0, 0});
  costs.set("conv2 backward_weights", {10e-3, 0, 0});
  StrategyInputs inputs = layerwise_inputs(net, 4, "ring");
  inputs.costs = &costs;
  inputs.link.bandwidth = 200e6;
  const double step = step_on_sim("layerwise", inputs);
  EXPECT_LT(step, 20.5e-3);
  inputs.options = {};
  EXPECT_LT(step, step_on_sim("sequential", inputs));
}

TEST(LayerwiseTime, OfATreeGrowsWithTheLogarithmAndOfSerialWithTheDevices) {
  const Net net = small_net(16);
  const CostTable costs = computing(net, 1e-6);
  const double bytes = double(make_buckets(net, 1 << 20)[0].range.count());
  for (const int devices : {2, 4, 8}) {
    StrategyInputs inputs = layerwise_inputs(net, devices, "tree", 1 << 20);
    inputs.costs = &costs;
    inputs.link.bandwidth = 1e6;
    const double one_way = bytes / inputs.link.bandwidth;
    EXPECT_NEAR(step_on_sim("layerwise", inputs) / one_way, 2 * std::log2(devices), 0.1);
    // The device that gets its weights first sends its next gradients while the others get theirs.
    inputs.options["reduce"] = "serial";
    EXPECT_NEAR(step_on_sim("layerwise", inputs) / one_way, devices, 0.1);
  }
}

}  // namespace
}  // namespace tandem::test
