// Strategy `asymmetric`: what must hold for its plans, what it does in which order.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "core/device/topology.h"
#include "core/schedule/cost/step_model.h"
#include "core/schedule/report/report.h"
#include "core/schedule/strategies/asymmetric/asymmetric.h"
#include "core/schedule/strategies/common/stages.h"
#include "tests/schedule/plan_checks.h"
#include "tests/schedule/plan_promises.h"

namespace tandem::test {
namespace {

StrategyInputs asymmetric_inputs(const Net& net, int devices, const std::string& groups) {
  StrategyInputs inputs = inputs_of(net, devices);
  inputs.options["groups"] = groups;
  return inputs;
}

struct AsymmetricCase {
  int devices;
  std::string groups;
  bool convolutions = false;
  bool clips = false;  // and adds up two batches
};

Plan asymmetric_plan(const AsymmetricCase& which) {
  static const Net convolutions = small_net(9);
  StrategyInputs inputs = asymmetric_inputs(which.convolutions ? convolutions : dense_net(),
                                            which.devices, which.groups);
  inputs.needs_norms = inputs.clips_gradients = which.clips;
  inputs.micro_batches_per_step = which.clips ? 2 : 1;
  return build_plan("asymmetric", inputs);
}

// Every division of up to four devices into two groups.
std::vector<AsymmetricCase> asymmetric_cases() {
  std::vector<AsymmetricCase> result;
  for (int devices = 2; devices <= 4; ++devices) {
    for (unsigned set = 1; set + 1 < 1U << devices; ++set) {
      std::string errors, weights;
      for (int device = 0; device < devices; ++device) {
        std::string& group = (set >> device & 1) != 0 ? errors : weights;
        group += fmt::format("{}{}", group.empty() ? "" : ",", device);
      }
      const std::string groups = fmt::format("E={}/W={}", errors, weights);
      result.push_back({devices, groups, set % 3 == 1, set % 5 == 2});
    }
  }
  return result;
}

class AsymmetricPlan : public testing::TestWithParam<AsymmetricCase> {};

INSTANTIATE_TEST_SUITE_P(Groups, AsymmetricPlan, testing::ValuesIn(asymmetric_cases()),
                         [](const testing::TestParamInfo<AsymmetricCase>& info) {
                           std::string name;
                           for (const char c : info.param.groups) {
                             if (std::isalnum(c) != 0) name += c;
                           }
                           return name + (info.param.convolutions ? "_convolutions" : "") +
                                  (info.param.clips ? "_clipped" : "");
                         });

TEST_P(AsymmetricPlan, HasNoRace) {
  expect_no_race(asymmetric_plan(GetParam()));
}
TEST_P(AsymmetricPlan, HasNoWaitThatCouldBeLeftOut) {
  expect_each_wait_needed(asymmetric_plan(GetParam()), GetParam().devices == 2 ? 1 : 11);
}
TEST_P(AsymmetricPlan, ReadsNoTransientMemoryBeforeItIsWritten) {
  expect_written_before_read(asymmetric_plan(GetParam()));
}
TEST_P(AsymmetricPlan, TellsEveryDeviceThatUpdatesOfTheLoss) {
  expect_updates_know_of_the_loss(asymmetric_plan(GetParam()));
}
TEST_P(AsymmetricPlan, ComputesOnTheComputeStreamsAndMovesOnTheOthers) {
  expect_passes_on_compute_streams_only(asymmetric_plan(GetParam()));
}

TEST_P(AsymmetricPlan, ComputesErrorsInEAndWeightsInW) {
  const Plan plan = asymmetric_plan(GetParam());
  const std::string weights = GetParam().groups.substr(GetParam().groups.find('W'));
  for (const Task& task : plan.tasks) {
    const auto* work = std::get_if<LayerWork>(&task.work);
    const bool updates = std::holds_alternative<UpdateWork>(task.work);
    if (!updates && (work == nullptr || work->pass == LayerPass::forward)) continue;
    const bool in_w = weights.find(std::to_string(task.streams[0].device)) != std::string::npos;
    EXPECT_EQ(in_w, updates || work->pass == LayerPass::backward_weights) << task.label;
  }
}

TEST(Asymmetric, BroadcastsALayersOutputWhileTheNextIsComputed) {
  const Plan plan = asymmetric_plan({4, "E=0,2/W=1,3"});
  EXPECT_LT(find_task(plan, "forward relu1 @3"), find_task(plan, "send fc1 @3->@1"));
  EXPECT_LT(find_task(plan, "send fc1 @3->@1"), find_task(plan, "forward fc2 @0"));
}

TEST(Asymmetric, EComputesTheErrorsOfItsShareAndWTheGradientOfItsSlice) {
  const Plan plan = asymmetric_plan({4, "E=0,2/W=1,3"});
  const auto use = [&](const char* label) -> const PlanBinding& {
    return plan.bindings[size_t(std::get<LayerWork>(task(plan, label).work).binding)];
  };
  const PlanBinding& own = use("backward_data fc2 @2");
  EXPECT_EQ(own.rows.begin, 5);
  EXPECT_EQ(own.rows.end, 7);
  const PlanBinding& errors = use("backward_data fc2 @2 of others");
  EXPECT_EQ(errors.rows.begin, 7);
  EXPECT_EQ(errors.rows.end, 9);
  const PlanBinding& weights = use("backward_weights fc1 @3 weights, rows 3-5");
  EXPECT_EQ(weights.rows.begin, 3);
  EXPECT_EQ(weights.rows.end, 5);
  EXPECT_EQ(weights.slice.begin, 11);
  EXPECT_EQ(weights.slice.end, 21);
  EXPECT_EQ(plan.bytes(weights.weight_gradients[0]), 10 * 25 * 4);
  EXPECT_EQ(plan.bytes(weights.output_gradients[0]), 2 * 21 * 4);
}

// W is far behind E.
CostTable slow_weights(const Net& net) {
  CostTable costs;
  for (const Layer& layer : net.layers) {
    costs.set(layer.name + " forward", {1e-6, 9, 0});
    costs.set(layer.name + " backward_data", {1e-6, 9, 0});
    costs.set(layer.name + " backward_weights", {1, 9, 0});
  }
  return costs;
}

TEST(Asymmetric, GoesOnWithTheNextErrorsWhileWeightsAreComputed) {
  const Net net = dense_net();
  const CostTable costs = slow_weights(net);
  StrategyInputs inputs = asymmetric_inputs(net, 2, "E=0/W=1");
  inputs.costs = &costs;
  const Plan plan = build_plan("asymmetric", inputs);
  const StepModel model(net, plan, costs, inputs.link, nullptr);
  const StepTimes times = model.in_order(model.given_order());
  const auto time = [&](const char* label) {
    const int index = find_task(plan, label);
    EXPECT_GE(index, 0) << label;
    return index < 0 ? TaskTime() : times.tasks[size_t(index)];
  };
  for (const char* errors :
       {"send fc2 activation gradients @0->@1", "backward_data fc2 @0 of others",
        "send fc1 activation gradients @0->@1", "send fc1 activation gradients of @1 @0->@1"}) {
    EXPECT_LT(time(errors).end, time("update fc3 @1").start) << errors;
  }
}

TEST(Asymmetric, HandsWeightsOnSoThatNobodySendsMuchMoreThanOthers) {
  const Net net = dense_net();
  const Plan plan = build_plan("asymmetric", asymmetric_inputs(net, 4, "E=0,1,2/W=3"));
  std::map<int, int64_t> sent, received;
  for (const Task& task : plan.tasks) {
    if (task.stage != stages::broadcast) continue;
    const auto& copy = std::get<CopyWork>(task.work);
    for (const CopySegment& segment : copy.segments) {
      sent[task.streams[1].device] += plan.bytes(segment.source);
      received[task.streams[0].device] += plan.bytes(segment.source);
    }
  }
  int64_t all = 0;
  for (const WeightArray& array : net.weights) all += array.count * 4;
  for (int device = 0; device < 3; ++device) EXPECT_GE(received[device], all) << device;
  EXPECT_EQ(received[3], 0);
  EXPECT_LT(sent[3], 2 * all + 1024) << "to the three others from one: 3 times";
}

TEST(Asymmetric, BeginsBackwardWithTheRowsThatItWentForwardOver) {
  StrategyInputs inputs = asymmetric_inputs(dense_net(), 4, "E=0,2/W=1,3");
  inputs.link = {1e6, 1e-3};  // rows of others are long on their way
  const Plan plan = build_plan("asymmetric", inputs);
  EXPECT_LT(find_task(plan, "backward_data fc3 @0"), find_task(plan, "forward loss @0 of others"));
  EXPECT_LT(find_task(plan, "send fc3 activation gradients @0->@1"),
            find_task(plan, "backward_data fc3 @0"));
  EXPECT_EQ(find_task(plan, "forward loss @2 of others 2"), -1);
}

// What nobody waits for yet never stands before what somebody waits for: one stream each way does.
TEST(Asymmetric, SendsOnOneStreamAndReceivesOnOne) {
  const Plan plan = asymmetric_plan({4, "E=0,2/W=1,3"});
  int transfers = 0;
  for (const Task& task : plan.tasks) {
    if (task.streams.size() < 2 || task.stage == Stage::report) continue;
    ++transfers;
    EXPECT_EQ(task.streams[0].kind, StreamKind::communication) << task.label;
    EXPECT_EQ(task.streams[1].kind, StreamKind::send) << task.label;
  }
  EXPECT_GT(transfers, 0);
}

// The order of tasks is the costs'; that of sums, and so the bits, is not.
TEST(Asymmetric, AddsUpTheGradientsOfTheRowsInAnOrderThatCostsDoNotChange) {
  const Net net = dense_net();
  const auto added = [&](const CostTable& costs, LinkSpec link) {
    StrategyInputs inputs = asymmetric_inputs(net, 4, "E=0,2/W=1,3");
    inputs.options["slices"] = "all";
    inputs.costs = &costs;
    inputs.link = link;
    const Plan plan = build_plan("asymmetric", inputs);
    std::map<std::pair<int, int>, std::vector<int64_t>> rows;  // by layer and device
    for (const Task& task : plan.tasks) {
      const auto* work = std::get_if<LayerWork>(&task.work);
      if (work == nullptr || work->pass != LayerPass::backward_weights) continue;
      const PlanBinding& use = plan.bindings[size_t(work->binding)];
      std::vector<int64_t>& before = rows[{use.layer, use.device}];
      EXPECT_EQ(work->accumulate, !before.empty()) << task.label;
      before.push_back(use.rows.begin);
    }
    return rows;
  };
  const auto fast = added(CostTable(), {4e9, 1e-6});
  EXPECT_EQ(fast.size(), 6);
  for (const auto& [of, rows] : fast) EXPECT_EQ(rows.size(), 4);
  EXPECT_EQ(added(slow_weights(net), {1e6, 1e-3}), fast);
  EXPECT_EQ(added(CostTable(), {1e6, 1e-3}), fast);
}

TEST(Asymmetric, RunsALayerAgainThatLeavesSavedMemory) {
  const Plan plan = asymmetric_plan({2, "E=0/W=1", true});
  EXPECT_GE(find_task(plan, "forward pool1 @0 of others"), 0);
  EXPECT_EQ(find_task(plan, "forward conv1 @0 of others"), -1);
  EXPECT_EQ(find_task(plan, "forward pool1 @1 weights"), -1);
}

TEST(Asymmetric, SaysWhereTheNewestWeightsAre) {
  const Plan plan = asymmetric_plan({4, "E=0,2/W=1,3"});
  int64_t floats = 0;
  for (const Placement& place : plan.weights_at) {
    EXPECT_TRUE(place.device == 1 || place.device == 3);
    floats += place.interval.count() / 4;
  }
  int64_t all = 0;
  for (const WeightArray& array : dense_net().weights) all += array.count;
  EXPECT_EQ(floats, all);
}

TEST(Asymmetric, TakesGroupsInAnyOrderForTheSame) {
  const Plan plan = asymmetric_plan({4, "E=2,0/W=3,1"});
  EXPECT_EQ(asymmetric_options().read(plan.options).groups, "E=0,2/W=1,3");
  EXPECT_EQ(to_text(plan), to_text(asymmetric_plan({4, "E=0,2/W=1,3"})));
}

// Without a topology, of all sizes of E the one with the shortest step.
TEST(Asymmetric, GivesTheGroupWithMoreToDoMoreDevices) {
  const Net net = dense_net();
  const auto groups = [&](double errors, double weights) {
    StrategyInputs inputs = inputs_of(net, 4);
    CostTable costs;
    for (const Layer& layer : net.layers) {
      costs.set(layer.name + " forward", {1e-3, 9, 0});
      costs.set(layer.name + " backward_data", {errors, 9, 0});
      costs.set(layer.name + " backward_weights", {weights, 9, 0});
    }
    inputs.costs = &costs;
    return asymmetric_options().read(build_plan("asymmetric", inputs).options).groups;
  };
  EXPECT_EQ(groups(1, 0.1), "E=0,1,2/W=3");
  EXPECT_EQ(groups(0.1, 1), "E=0/W=1,2,3");
}

TEST(Asymmetric, PutsNeighborsOfTheTopologyInDifferentGroups) {
  Topology hubs;  // {0, 1} and {2, 3}, with one channel between them
  hubs.devices = {"0", "1", "2", "3"};
  hubs.speeds = {1, 1, 1, 1};
  hubs.channels = {{"hub", 1e9}, {"uplink", 1e9}};
  for (int from = 0; from < 4; ++from) {
    for (int to = 0; to < 4; ++to) {
      Topology::Path path;
      if (from != to) path.channels = {0};
      if (from / 2 != to / 2) path.channels = {0, 1};
      hubs.paths.push_back(path);
    }
  }
  StrategyInputs inputs = inputs_of(dense_net(), 4);
  inputs.topology = &hubs;
  EXPECT_EQ(asymmetric_options().read(build_plan("asymmetric", inputs).options).groups,
            "E=0,2/W=1,3");
}

}  // namespace
}  // namespace tandem::test
