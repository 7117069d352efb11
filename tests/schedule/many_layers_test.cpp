// Nets of thousands of layers: plans, and the work to make them, grow as the net does. What would
// be quadratic shows in counts, not in seconds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/schedule/plan_checks.h"

namespace tandem::test {
namespace {

int64_t calls_of_types = 0;

tandem_status counted_cost(const tandem_layer_query* query, tandem_layer_cost* cost) {
  ++calls_of_types;
  return fake::element_cost(query, cost);
}

// Convolutions, each with a ReLU, and a classifier. Its types count what they are asked.
Net deep_net(int layers) {
  static const tandem_layer_type convolution = [] {
    tandem_layer_type type = fake::convolution;
    type.cost = &counted_cost;
    return type;
  }();
  FakeNet chain("deep", 8, {1, 3, 8, 8});
  for (int i = 0; i < layers / 2; ++i) {
    chain.convolution("conv" + std::to_string(i), 8, 3, 1, 1).relu("relu" + std::to_string(i));
  }
  Net net = chain.inner_product("fc", 10).loss().finish();
  for (Layer& layer : net.layers) {
    if (layer.type == &fake::convolution) layer.type = &convolution;
  }
  return net;
}

struct Amounts {
  int64_t tasks = 0, waits = 0, buffers = 0, calls = 0;
};

Amounts amounts_of(const std::string& strategy, int layers) {
  const Net net = deep_net(layers);
  calls_of_types = 0;
  const CostTable costs;
  StrategyInputs inputs = inputs_of(net, 2);
  inputs.costs = &costs;
  const Plan plan = build_plan(strategy, inputs);
  Amounts amounts;
  amounts.tasks = static_cast<int64_t>(plan.tasks.size());
  for (const Task& task : plan.tasks) amounts.waits += static_cast<int64_t>(task.after.size());
  amounts.buffers = static_cast<int64_t>(plan.buffers.size());
  amounts.calls = calls_of_types;
  return amounts;
}

TEST(ManyLayers, OfFourTimesAsManyThePlanAndTheWorkForItAreFourTimesAsMuch) {
  // Four times, and what is chosen among more places.
  const auto grown = [](int64_t amount) { return 9 * amount / 2 + 100; };
  for (const Strategy& strategy : built_in_strategies()) {
    const Amounts some = amounts_of(strategy.name, 1000), more = amounts_of(strategy.name, 4000);
    EXPECT_GE(more.tasks, 3 * some.tasks) << strategy.name;
    EXPECT_LE(more.tasks, grown(some.tasks)) << strategy.name;
    EXPECT_LE(more.waits, grown(some.waits)) << strategy.name;
    EXPECT_LE(more.buffers, grown(some.buffers)) << strategy.name;
    EXPECT_LE(more.calls, grown(some.calls)) << strategy.name;
  }
}

}  // namespace
}  // namespace tandem::test
