// What no order of a plan can beat, and the routes of broadcasts that stay near it.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/schedule/cost/bounds.h"
#include "core/schedule/strategies/common/broadcast_routes.h"
#include "tests/schedule/plan_checks.h"

namespace tandem::test {
namespace {

// Two hubs of two devices, 4 bytes a second to a hub, 1 between them.
Topology hubs() {
  Topology t;
  t.devices = {"0", "1", "2", "3"};
  t.speeds = {1, 1, 1, 0.5};
  t.channels = {{"a", 4}, {"b", 4}, {"a -> b", 1}, {"b -> a", 1}};
  for (uint32_t from = 0; from < 4; ++from) {
    for (uint32_t to = 0; to < 4; ++to) {
      Topology::Path path;
      if (from != to) path.channels = {from / 2};
      if (from / 2 != to / 2) path.channels = {from / 2, 2 + from / 2, to / 2};
      t.paths.push_back(path);
    }
  }
  return t;
}

TEST(LinkLoads, AddUpWhatPassesEachChannelAndWhatEachEndCarries) {
  const Topology topology = hubs();
  LinkLoads loads(0, &topology);
  loads.add(0, 1, 8);
  EXPECT_EQ(loads.busiest(), (std::pair<double, std::string>(2, "a")));
  loads.add(0, 2, 3);
  EXPECT_DOUBLE_EQ(loads.busiest().first, 5);
  EXPECT_EQ(loads.busiest().second, "what @0 sends");
  loads.add(1, 3, 3);
  EXPECT_EQ(loads.busiest(), (std::pair<double, std::string>(6, "a -> b")));
}

TEST(LinkLoads, WithoutATopologyCountEnds) {
  LinkLoads loads(2, nullptr);
  loads.add(0, 1, 2);
  loads.add(2, 1, 4);
  EXPECT_EQ(loads.busiest(), (std::pair<double, std::string>(3, "what @1 receives")));
}

TEST(Bounds, AreTheBusiestDevicesComputeAndTheBusiestLink) {
  const Net net = small_net(8);
  StrategyInputs inputs = inputs_of(net, 4);
  inputs.options["reduce"] = "ring";
  const Plan plan = build_plan("layerwise", inputs);
  const StepBounds bounds = bounds_of(net, plan, CostTable(), 1e6);
  double bytes = 0;
  for (const WeightArray& array : net.weights) bytes += static_cast<double>(array.count) * 4;
  // Gradients and weights, three quarters of each.
  EXPECT_NEAR(bounds.link, 1.5 * bytes / 1e6, 0.02 * bounds.link);
  EXPECT_GT(bounds.compute, 0);
  const Topology topology = hubs();
  const StepBounds slow = bounds_of(net, plan, CostTable(), 0, &topology);
  EXPECT_EQ(slow.device, 3);
  EXPECT_DOUBLE_EQ(slow.compute, 2 * bounds.compute);
}

TEST(BroadcastRoutes, LeaveASlowLinkLessBusyThanOneThatSendsToAllWould) {
  const Topology topology = hubs();
  const Net net = small_net(8);
  StrategyInputs inputs = inputs_of(net, 4);
  inputs.topology = &topology;
  const std::vector<int> owners{1, 3};
  const auto routes = broadcast_routes(inputs, LinkLoads(0, &topology), owners, {8, 8}, 2);
  ASSERT_EQ(routes.size(), 2U);
  LinkLoads loads(0, &topology), star(0, &topology);
  for (size_t i = 0; i < 2; ++i) {
    ASSERT_EQ(routes[i].size(), 2U);
    for (const auto& [line] : routes[i]) {
      EXPECT_EQ(std::set<int>(line.begin(), line.end()).size(), 4U);
      const auto owner = std::find(line.begin(), line.end(), owners[i]) - line.begin();
      for (size_t at = 1; at < line.size(); ++at) {
        const bool is_right = static_cast<ptrdiff_t>(at) > owner;
        loads.add(line[is_right ? at - 1 : at], line[is_right ? at : at - 1], 4);
      }
    }
    for (int to = 0; to < 4; ++to) {
      if (to != owners[i]) star.add(owners[i], to, 8);
    }
  }
  EXPECT_LE(loads.busiest().first, 0.75 * star.busiest().first);
}

}  // namespace
}  // namespace tandem::test
