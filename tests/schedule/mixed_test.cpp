// Strategy `mixed`: what its groups divide and sum, what it chooses, what it refuses.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/schedule/cost/list_schedule.h"
#include "core/schedule/report/report.h"
#include "core/schedule/strategies/common/fastest_variant.h"
#include "core/schedule/strategies/mixed/mixed.h"
#include "tests/schedule/plan_checks.h"
#include "tests/schedule/plan_promises.h"

namespace tandem::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

StrategyInputs mixed_inputs(const Net& net, int devices, const std::string& divide) {
  StrategyInputs inputs = inputs_of(net, devices);
  inputs.options["divide"] = divide;
  return inputs;
}

std::vector<std::string> sorted_labels(const Plan& plan) {
  std::vector<std::string> labels;
  for (const Task& task : plan.tasks) labels.push_back(task.label);
  std::sort(labels.begin(), labels.end());
  return labels;
}

TEST(Mixed, WithoutDividedLayersHasTheTasksOfLayerwise) {
  const Net net = small_net(8);
  for (const std::string reduce : {"serial", "tree", "ring"}) {
    StrategyInputs inputs = layerwise_inputs(net, 4, reduce);
    const Plan layerwise = build_plan("layerwise", inputs);
    inputs.options["divide"] = "none";
    EXPECT_EQ(sorted_labels(build_plan("mixed", inputs)), sorted_labels(layerwise)) << reduce;
  }
}

TEST(Mixed, WithAllDevicesInOneGroupHasTheTasksOfFcParallel) {
  StrategyInputs inputs = inputs_of(dense_net(), 3);
  inputs.options["quota"] = 3;
  const Plan fc_parallel = build_plan("fc_parallel", inputs);
  EXPECT_EQ(sorted_labels(build_plan("mixed", mixed_inputs(dense_net(), 3, "all=3"))),
            sorted_labels(fc_parallel));
}

// Nine rows on four devices: the groups have five and four of them.
TEST(Mixed, DividesNeuronsWithinGroupsAndSumsEqualSlicesOverThem) {
  const Plan plan = build_plan("mixed", mixed_inputs(dense_net(), 4, "all=2"));
  const auto use = [&](const std::string& label) {
    return plan.bindings[size_t(std::get<LayerWork>(task(plan, label).work).binding)];
  };
  EXPECT_EQ(use("forward fc2 @0 of @0").slice, (Interval{0, 9}));
  EXPECT_EQ(use("forward fc2 @0 of @0").rows, (Interval{0, 5}));
  EXPECT_EQ(use("forward fc2 @3 of @2").slice, (Interval{9, 18}));
  EXPECT_EQ(use("forward fc2 @3 of @2").rows, (Interval{5, 9}));
  EXPECT_EQ(find_task(plan, "forward fc2 @3 of @0"), -1);
  int sums = 0;
  for (const Task& task : plan.tasks) {
    if (!task.label.starts_with("reduce fc2")) continue;
    ++sums;
    const int source = task.streams[1].device, target = task.streams[0].device;
    EXPECT_EQ(source % 2, target % 2) << task.label << " is between different slices";
  }
  EXPECT_GT(sums, 0);
  expect_no_race(plan);
}

TEST(Mixed, PassesRowsBetweenLayersOfDifferentGroups) {
  const Plan plan = build_plan("mixed", mixed_inputs(dense_net(), 4, "fc1=4,fc2=2"));
  EXPECT_GE(find_task(plan, "gather fc1 @3"), 0);
  EXPECT_GE(find_task(plan, "gather fc2 @3"), 0);
  EXPECT_GE(find_task(plan, "forward fc3 @3"), 0) << "data-parallel";
  expect_no_race(plan);
  expect_written_before_read(plan);
}

TEST(Mixed, KeepsAPartOfTheSolversStateOnEachDevice) {
  const Net net = alexnet(8);
  const Plan plan = build_plan("mixed", mixed_inputs(net, 4, "none"));
  for (int device = 0; device < 4; ++device) {
    const int64_t bytes = plan.buffer(plan.find_buffer("state", device)).bytes;
    EXPECT_NEAR(double(bytes), double(net.weight_floats), 0.01 * double(net.weight_floats));
  }
}

TEST(Mixed, DividesLargeLayersWhereLinksAreSlowAndNoneWhereTheyAreFast) {
  const Net net = alexnet(64);
  const CostTable costs;
  StrategyInputs inputs = inputs_of(net, 4);
  inputs.costs = &costs;
  inputs.link = {1e8, 1e-5};
  const std::string slow = std::get<std::string>(build_plan("mixed", inputs).options.at("divide"));
  EXPECT_THAT(slow, HasSubstr("fc6="));
  inputs.link = {1e13, 0};
  const std::string fast = std::get<std::string>(build_plan("mixed", inputs).options.at("divide"));
  EXPECT_EQ(fast, "none");
}

TEST(Mixed, IsSimulatedNoSlowerThanTheStrategiesThatItComposes) {
  const Net net = alexnet(64);
  const CostTable costs;
  for (const double bandwidth : {3e8, 1e9, 4e9}) {
    StrategyInputs inputs = inputs_of(net, 4);
    inputs.costs = &costs;
    inputs.link = {bandwidth, 1e-5};
    const double mixed = simulated_step_seconds(inputs, build_plan("mixed", inputs));
    for (const char* other : {"layerwise", "fc_parallel"}) {
      EXPECT_LE(mixed, 1.01 * simulated_step_seconds(inputs, build_plan(other, inputs)))
          << other << " at " << bandwidth;
    }
  }
}

TEST(Mixed, MakesTheSamePlanAgainFromTheOptionsThatItRecords) {
  const Net net = alexnet(64);
  const CostTable costs;
  StrategyInputs inputs = inputs_of(net, 4);
  inputs.costs = &costs;
  inputs.link = {1e9, 1e-5};
  const Plan first = build_plan("mixed", inputs);
  inputs.options = first.options;
  EXPECT_EQ(to_text(build_plan("mixed", inputs)), to_text(first));
}

TEST(Mixed, SaysInWordsWhatItDivides) {
  const Plan plan = build_plan("mixed", mixed_inputs(dense_net(), 4, "fc1=4,fc2=2"));
  ASSERT_EQ(plan.notes.size(), 3U);
  EXPECT_EQ(plan.notes[0],
            "'fc2': divided by 2 in 2 groups of 2 devices, summed over the groups by ring");
  EXPECT_EQ(plan.notes[1], "'fc1': divided by neurons over all 4 devices");
  EXPECT_THAT(plan.notes[2], HasSubstr("all other layers: gradients summed by ring"));
}

TEST(Mixed, ALaterWordOfALayerReplacesAnEarlierOne) {
  const auto divided = [](const std::string& divide) {
    const Plan plan = build_plan("mixed", mixed_inputs(dense_net(), 4, divide));
    return std::get<std::string>(plan.options.at("divide"));
  };
  EXPECT_EQ(divided("all=4,fc1=1"), divided("fc2=4,fc3=4"));
  EXPECT_EQ(divided("fc2=4,fc2=1"), divided("none"));
}

TEST(Mixed, RefusesWhatItCannotDivide) {
  const auto refusal = [](const std::string& divide) {
    return message_of([&] { (void)build_plan("mixed", mixed_inputs(dense_net(), 4, divide)); });
  };
  EXPECT_THAT(refusal("fc1=3"), AllOf(HasSubstr("--divide fc1=3"), HasSubstr("divides all 4")));
  EXPECT_THAT(refusal("fc9=2"), AllOf(HasSubstr("no such fully connected layer"),
                                      HasSubstr("can be divided: fc1, fc2, fc3")));
  EXPECT_THAT(refusal("fc1"), HasSubstr("LAYER=SIZE"));
}

}  // namespace
}  // namespace tandem::test
