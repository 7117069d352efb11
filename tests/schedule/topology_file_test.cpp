// Topology files: what they say, and how a wrong one is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/schedule/cost/topology_file.h"
#include "core/schedule/strategies/common/collectives.h"
#include "tests/schedule/plan_checks.h"
#include "tests/schedule/simulate.h"

namespace tandem::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Topology parsed(const std::string& text) {
  return parse_topology(text, "t.txt");
}
std::string refusal(const std::string& text) {
  return message_of([&] { (void)parsed(text); });
}

const std::string two = "device { name: 'a' } device { name: 'b' }\n";

TEST(TopologyFile, GivesEachDirectionOfALinkAChannelOfItsOwn) {
  const Topology t =
      parsed(two + "link { between: 'a' and: 'b' bandwidth: '4GB/s' latency: '10us' }");
  EXPECT_THAT(t.devices, ElementsAre("a", "b"));
  EXPECT_THAT(t.path(0, 1).channels, ElementsAre(0U));
  EXPECT_THAT(t.path(1, 0).channels, ElementsAre(1U));
  EXPECT_DOUBLE_EQ(t.path(0, 1).latency, 10e-6);
  EXPECT_DOUBLE_EQ(t.seconds(0, 1, 4'000'000), 10e-6 + 1e-3);
}

TEST(TopologyFile, LetsAllThatPassesAHubShareIt) {
  const Topology t =
      parsed(two +
             "hub { name: 'h' bandwidth: '5GB/s' latency: '1us' }"
             "link { between: 'a' between: 'b' and: 'h' bandwidth: '12GB/s' latency: '2us' }");
  const auto& there = t.path(0, 1).channels;
  const auto& back = t.path(1, 0).channels;
  ASSERT_EQ(there.size(), 3U);
  EXPECT_EQ(there[1], back[1]);
  EXPECT_NE(there[0], back[2]);
  EXPECT_DOUBLE_EQ(t.bandwidth(0, 1), 5e9);
  EXPECT_NEAR(t.path(0, 1).latency, 5e-6, 1e-12);
}

TEST(TopologyFile, TakesTheFastestWayAndNeverThroughADevice) {
  const Topology t = parsed(
      "device { name: 'a' name: 'b' name: 'c' } switch { name: 's' }"
      "link { between: 'a' and: 'b' bandwidth: '100GB/s' }"
      "link { between: 'b' and: 'c' bandwidth: '100GB/s' }"
      "link { between: 'a' between: 'b' between: 'c' and: 's' bandwidth: '1GB/s' }");
  EXPECT_EQ(t.path(0, 1).channels.size(), 1U);
  EXPECT_DOUBLE_EQ(t.bandwidth(0, 2), 1e9);
}

TEST(TopologyFile, KnowsHowFastDevicesAre) {
  const Topology t = parsed(
      "device { name: 'a' } device { name: 'b' speed: 0.7 }"
      "link { between: 'a' and: 'b' bandwidth: '1GB/s' }");
  EXPECT_THAT(t.speeds, ElementsAre(1, 0.7));
}

TEST(TopologyFile, IsReadAsItIsWritten) {
  const Topology t = parsed(topology_text({"x", "y"}, {{0, 1, 4e9, 10e-6}, {1, 0, 2e9, 20e-6}}));
  EXPECT_DOUBLE_EQ(t.bandwidth(0, 1), 4e9);
  EXPECT_DOUBLE_EQ(t.bandwidth(1, 0), 2e9);
  EXPECT_NEAR(t.path(1, 0).latency, 20e-6, 1e-12);
  EXPECT_DOUBLE_EQ(parsed(t.text).bandwidth(1, 0), 2e9);
}

TEST(TopologyFile, NamesWhatIsWrongAndWhere) {
  EXPECT_THAT(refusal(""), HasSubstr("topology 't.txt': it has no device"));
  EXPECT_THAT(refusal(two), HasSubstr("there is no path from 'a' to 'b'"));
  EXPECT_THAT(refusal(two + "link { between: 'a' and: 'bb' bandwidth: '1GB/s' }"),
              HasSubstr("there is no device, hub or switch 'bb' (did you mean 'b'?) (t.txt:2:"));
  EXPECT_THAT(refusal(two + "link { between: 'a' and: 'b' bandwidth: '1Gb' }"),
              HasSubstr("bandwidth '1Gb' is not a number, 0 or more, with a unit"));
  EXPECT_THAT(refusal(two + "link { between: 'a' and: 'b' bandwidth: '-1GB/s' }"),
              HasSubstr("bandwidth '-1GB/s' is not a number, 0 or more"));
  EXPECT_THAT(refusal(two + "link { between: 'a' and: 'b' bandwidth: '0GB/s' }"),
              HasSubstr("bandwidth '0GB/s' must be above 0"));
  EXPECT_THAT(refusal(two + "link { between: 'a' and: 'b' bandwidth: '1GB/s' latency: '-1us' }"),
              HasSubstr("latency '-1us' is not a number, 0 or more"));
  EXPECT_THAT(refusal(two + "link { between: 'a' and: 'b' }"),
              HasSubstr("a link needs a bandwidth (t.txt:2:"));
  EXPECT_THAT(refusal(two + "link { between: 'a' and: 'a' bandwidth: '1GB/s' }"),
              HasSubstr("a link between 'a' and itself"));
  EXPECT_THAT(refusal("device { name: 'a' name: 'a' }"), HasSubstr("'a' occurs twice (t.txt:1:"));
  EXPECT_THAT(refusal("device { name: 'a' speed: 0 }"),
              HasSubstr("speed is '0', but must be above 0"));
  EXPECT_THAT(refusal("devise { name: 'a' }"),
              HasSubstr("unknown field 'devise' (did you mean 'device'?)"));
  EXPECT_THAT(refusal(two + "link { between: 'a' and: 'b' bandwidth: '1GB/s' one_way: true }"),
              HasSubstr("there is no path from 'b' to 'a'"));
}

// Paths of any length would let a small file take gigabytes.
TEST(TopologyFile, RefusesPathsThatNoMachineHas) {
  std::string text = two;
  std::string last = "a";
  for (int i = 0; i < 70; ++i) {
    const std::string next = i == 69 ? "b" : fmt::format("s{}", i);
    if (i < 69) text += fmt::format("switch {{ name: '{}' }}", next);
    text += fmt::format("link {{ between: '{}' and: '{}' bandwidth: '1GB/s' }}", last, next);
    last = next;
  }
  EXPECT_THAT(refusal(text), HasSubstr("from 'a' to 's64' a copy passes 65 links and hubs; at most "
                                       "64 can be"));
}

// Two servers of two, a fast switch in each and a slow network between them.
std::string servers() {
  return "device { name: 'a0' name: 'b0' name: 'a1' name: 'b1' } switch { name: 'a' } switch { "
         "name: 'b' } link { between: 'a0' between: 'a1' and: 'a' bandwidth: '10GB/s' } link { "
         "between: 'b0' between: 'b1' and: 'b' bandwidth: '10GB/s' } link { between: 'a' and: 'b' "
         "bandwidth: '1GB/s' }";
}

TEST(DeviceOrder, KeepsNeighborsTogether) {
  const Net net = small_net(8);
  StrategyInputs inputs = inputs_of(net, 4);
  EXPECT_THAT(device_order(inputs), ElementsAre(0, 1, 2, 3));
  const Topology t = parsed(servers());
  inputs.topology = &t;
  EXPECT_THAT(device_order(inputs), ElementsAre(0, 2, 1, 3));
}

// Around the ring every link between servers carries one device's traffic, whatever the tree does.
TEST(TopologyOnSim, CopiesThatShareAChannelTakeTurns) {
  const Net net = small_net(8);
  CostTable costs;
  for (const Layer& layer : net.layers) {
    for (const char* pass : {" forward", " backward_data", " backward_weights"}) {
      costs.set(layer.name + pass, {1e-9, 0, 0});
    }
  }
  for (const char* key : {"add", "update", "check", "input", "results"}) costs.set(key, {0, 0, 0});
  StrategyInputs inputs = inputs_of(net, 4);
  inputs.costs = &costs;
  inputs.options["bucket"] = 1 << 20;
  const auto step = [&](const std::string& text) {
    const auto topology = std::make_shared<Topology>(parsed(text));
    inputs.topology = topology.get();
    return step_on_sim("layerwise", inputs, topology);
  };
  const std::string devices = "device { name: '0' name: '1' name: '2' name: '3' } ";
  const std::string links =
      "link { between: '0' between: '1' between: '2' between: '3' and: 'x' bandwidth: '1MB/s' }";
  const double apart = step(devices + "switch { name: 'x' } " + links);
  const double shared = step(devices + "hub { name: 'x' bandwidth: '1MB/s' } " + links);
  const double bytes = 4 * double(net.weight_floats);
  EXPECT_NEAR(apart, 1.5 * bytes / 1e6, 0.01 * apart);
  EXPECT_NEAR(shared, 6 * bytes / 1e6, 0.01 * shared);
}

TEST(TopologyOnSim, ASlowDeviceIsWaitedFor) {
  const Net net = small_net(8);
  StrategyInputs inputs = inputs_of(net, 2);
  CostTable costs;
  for (const Layer& layer : net.layers) {
    for (const char* pass : {" forward", " backward_data", " backward_weights"}) {
      costs.set(layer.name + pass, {1e-3, 0, 0});
    }
  }
  inputs.costs = &costs;
  const auto step = [&](const char* speed) {
    const auto topology = std::make_shared<Topology>(
        parsed(fmt::format("device {{ name: 'a' }} device {{ name: 'b' speed: {} }} link {{ "
                           "between: 'a' and: 'b' bandwidth: '1GB/s' }}",
                           speed)));
    ExecutorOptions how;
    how.speeds = topology->speeds;
    return step_on_sim("layerwise", inputs, topology, how);
  };
  EXPECT_NEAR(step("0.5") / step("1"), 2, 0.02);
}

TEST(Variation, IsSeededAndMakesStepsLonger) {
  const Net net = small_net(8);
  StrategyInputs inputs = inputs_of(net, 4);
  const CostTable costs;
  inputs.costs = &costs;
  ExecutorOptions how;
  const double plain = step_on_sim("layerwise", inputs, nullptr, how);
  how.variation = 0.5;
  const double varied = step_on_sim("layerwise", inputs, nullptr, how);
  EXPECT_GT(varied, plain);
  EXPECT_EQ(step_on_sim("layerwise", inputs, nullptr, how), varied);
  how.variation_seed = 2;
  EXPECT_NE(step_on_sim("layerwise", inputs, nullptr, how), varied);
}

}  // namespace
}  // namespace tandem::test
