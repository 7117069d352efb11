// Strategy `asymmetric`: what must hold for its plans, what it does in which order.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "core/device/topology.h"
#include "tests/schedule/plan_checks.h"
#include "tests/schedule/plan_promises.h"

namespace tandem::test {
namespace {

const Net& dense_net() {
  static const Net net = FakeNet("dense", 9, {1, 1, 5, 5})
                             .inner_product("fc1", 21)
                             .relu("relu1")
                             .inner_product("fc2", 18)
                             .relu("relu2")
                             .inner_product("fc3", 10)
                             .loss()
                             .finish();
  return net;
}

StrategyInputs inputs_for(const Net& net, int devices, const std::string& groups) {
  StrategyInputs inputs = inputs_of(net, devices);
  inputs.options.roles.groups = groups;
  return inputs;
}

struct Case {
  int devices;
  std::string groups;
  bool convolutions = false;
  bool clips = false;  // and adds up two batches
};

Plan plan_of(const Case& which) {
  static const Net convolutions = small_net(9);
  StrategyInputs inputs =
      inputs_for(which.convolutions ? convolutions : dense_net(), which.devices, which.groups);
  inputs.needs_norms = inputs.clips_gradients = which.clips;
  inputs.batches_per_update = which.clips ? 2 : 1;
  return build_plan("asymmetric", inputs);
}

// Every division of up to four devices into two groups.
std::vector<Case> cases() {
  std::vector<Case> result;
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

class AsymmetricPlan : public testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(Groups, AsymmetricPlan, testing::ValuesIn(cases()),
                         [](const testing::TestParamInfo<Case>& info) {
                           std::string name;
                           for (const char c : info.param.groups) {
                             if (std::isalnum(c) != 0) name += c;
                           }
                           return name + (info.param.convolutions ? "_convolutions" : "") +
                                  (info.param.clips ? "_clipped" : "");
                         });

TEST_P(AsymmetricPlan, HasNoRace) {
  expect_no_race(plan_of(GetParam()));
}
TEST_P(AsymmetricPlan, HasNoWaitThatCouldBeLeftOut) {
  expect_each_wait_needed(plan_of(GetParam()), GetParam().devices == 2 ? 1 : 11);
}
TEST_P(AsymmetricPlan, ReadsNoTransientMemoryBeforeItIsWritten) {
  expect_written_before_read(plan_of(GetParam()));
}
TEST_P(AsymmetricPlan, TellsEveryDeviceThatUpdatesOfTheLoss) {
  expect_updates_know_of_the_loss(plan_of(GetParam()));
}
TEST_P(AsymmetricPlan, ComputesOnTheComputeStreamsAndMovesOnTheOthers) {
  expect_passes_on_compute_streams_only(plan_of(GetParam()));
}

TEST_P(AsymmetricPlan, ComputesErrorsInEAndWeightsInW) {
  const Plan plan = plan_of(GetParam());
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
  const Plan plan = plan_of({4, "E=0,2/W=1,3"});
  EXPECT_LT(find_task(plan, "forward relu1 @3"), find_task(plan, "send fc1 @3->@1"));
  EXPECT_LT(find_task(plan, "send fc1 @3->@1"), find_task(plan, "forward fc2 @0"));
}

TEST(Asymmetric, EComputesTheErrorsOfItsShareAndWTheGradientOfItsSlice) {
  const Plan plan = plan_of({4, "E=0,2/W=1,3"});
  const auto use = [&](const char* label) -> const PlanBinding& {
    return plan.bindings[size_t(std::get<LayerWork>(task(plan, label).work).binding)];
  };
  const PlanBinding& own = use("backward_data fc2 @2");
  EXPECT_EQ(own.row_begin, 5);
  EXPECT_EQ(own.row_end, 7);
  const PlanBinding& errors = use("backward_data fc2 @2 errors");
  EXPECT_EQ(errors.row_begin, 7);
  EXPECT_EQ(errors.row_end, 9);
  const PlanBinding& weights = use("backward_weights fc1 @3 weights, rows 3-5");
  EXPECT_EQ(weights.row_begin, 3);
  EXPECT_EQ(weights.row_end, 5);
  EXPECT_EQ(weights.slice_begin, 11);
  EXPECT_EQ(weights.slice_end, 21);
  EXPECT_EQ(plan.bytes(weights.weight_gradients[0]), 10 * 25 * 4);
  EXPECT_EQ(plan.bytes(weights.output_gradients[0]), 2 * 21 * 4);
}

TEST(Asymmetric, GoesOnWithTheNextErrorsWhileWeightsAreComputed) {
  const Plan plan = plan_of({2, "E=0/W=1"});
  int before = -1;
  for (const char* label :
       {"send fc2 errors @0->@1", "backward_data fc2 @0 errors",
        "backward_weights fc2 @1 weights, rows 0-5", "update fc2 @1", "send fc1 errors @0->@1",
        "backward_weights fc1 @1 weights, rows 0-5", "update fc1 @1"}) {
    EXPECT_LT(before, find_task(plan, label)) << label;
    before = find_task(plan, label);
  }
  EXPECT_LT(find_task(plan, "update fc2 @1"), find_task(plan, "broadcast fc2 0 @1->@0"));
  EXPECT_LT(find_task(plan, "update fc1 @1"), find_task(plan, "broadcast fc1 1 @1->@0"));
}

TEST(Asymmetric, SendsErrorsBeforeWeightsThatAreNotReady) {
  const Net net = dense_net();
  StrategyInputs inputs = inputs_for(net, 2, "E=0/W=1");
  CostTable costs;  // W is far behind
  for (const Layer& layer : net.layers) {
    costs.set(layer.name + " backward_data", {1e-6, 9, 0});
    costs.set(layer.name + " backward_weights", {1, 9, 0});
  }
  inputs.costs = &costs;
  const Plan plan = build_plan("asymmetric", inputs);
  EXPECT_LT(find_task(plan, "send fc1 errors @0->@1"), find_task(plan, "broadcast fc2 0 @1->@0"));
  // What is left of the weights when the next step begins holds nothing up.
  EXPECT_NE(task(plan, "send fc1 errors @0->@1").streams,
            task(plan, "broadcast fc2 0 @1->@0").streams);
}

TEST(Asymmetric, HandsWeightsOnSoThatNobodySendsMuchMoreThanOthers) {
  const Net net = dense_net();
  const Plan plan = build_plan("asymmetric", inputs_for(net, 4, "E=0,1,2/W=3"));
  std::map<int, int64_t> sent, received;
  for (const Task& task : plan.tasks) {
    if (task.stage != Stage::broadcast) continue;
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
  const Plan plan = plan_of({4, "E=0,2/W=1,3"});
  EXPECT_LT(find_task(plan, "backward_data fc3 @0"), find_task(plan, "forward loss @0 errors"));
  EXPECT_LT(find_task(plan, "send fc3 errors @0->@1"), find_task(plan, "backward_data fc3 @0"));
  EXPECT_EQ(find_task(plan, "forward loss @2 errors 2"), -1);
}

TEST(Asymmetric, SendsActivationsOnStreamsWhereTheyHoldUpNoErrorsAndNoUrgentWeights) {
  const Plan plan = plan_of({4, "E=0,2/W=1,3"});
  const int first = task(plan, "forward fc1 @0").layer;
  int urgent = 0;
  for (const Task& task : plan.tasks) {
    const bool is_urgent =
        task.stage == Stage::send_errors || (task.stage == Stage::broadcast && task.layer == first);
    if (!is_urgent) continue;
    ++urgent;
    for (const StreamId& stream : task.streams) {
      EXPECT_NE(stream.kind, StreamKind::background) << task.label;
      EXPECT_NE(stream.kind, StreamKind::background_send) << task.label;
    }
  }
  EXPECT_GT(urgent, 0);
  EXPECT_EQ(task(plan, "send fc1 @0->@1").streams[0].kind, StreamKind::background);
}

TEST(Asymmetric, AddsUpTheGradientsOfTheRowsInTheOrderInWhichTheirErrorsArrive) {
  const Plan plan = plan_of({4, "E=0,2/W=1,3"});
  const int fc1 = task(plan, "forward fc1 @0").layer;
  for (const int device : {1, 3}) {
    std::vector<int64_t> arrived, added;
    for (const Task& task : plan.tasks) {
      if (task.layer != fc1) continue;
      if (task.stage == Stage::send_errors && task.streams[0].device == device) {
        arrived.push_back(std::get<CopyWork>(task.work).segments[0].target.offset);
      }
      const auto* work = std::get_if<LayerWork>(&task.work);
      if (work == nullptr || work->pass != LayerPass::backward_weights) continue;
      const PlanBinding& use = plan.bindings[size_t(work->binding)];
      if (use.device != device) continue;
      added.push_back(use.output_gradients[0].offset);
      EXPECT_EQ(work->accumulate, added.size() > 1);
    }
    EXPECT_EQ(arrived.size(), 4);
    EXPECT_EQ(arrived, added) << device;
  }
}

TEST(Asymmetric, RunsALayerAgainThatLeavesSavedMemory) {
  const Plan plan = plan_of({2, "E=0/W=1", true});
  EXPECT_GE(find_task(plan, "forward pool1 @0 errors"), 0);
  EXPECT_EQ(find_task(plan, "forward conv1 @0 errors"), -1);
  EXPECT_EQ(find_task(plan, "forward pool1 @1 weights"), -1);
}

TEST(Asymmetric, SaysWhereTheNewestWeightsAre) {
  const Plan plan = plan_of({4, "E=0,2/W=1,3"});
  int64_t floats = 0;
  for (const WeightPlace& place : plan.weights_at) {
    EXPECT_TRUE(place.device == 1 || place.device == 3);
    floats += place.bytes / 4;
  }
  int64_t all = 0;
  for (const WeightArray& array : dense_net().weights) all += array.count;
  EXPECT_EQ(floats, all);
}

TEST(Asymmetric, DividesTheDevicesByHalvesUnlessTold) {
  EXPECT_EQ(build_plan("asymmetric", inputs_of(dense_net(), 4)).roles.groups, "E=0,1/W=2,3");
  EXPECT_EQ(build_plan("asymmetric", inputs_of(dense_net(), 3)).roles.groups, "E=0/W=1,2");
}

TEST(Asymmetric, PutsNeighboursOfTheTopologyInDifferentGroups) {
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
  EXPECT_EQ(build_plan("asymmetric", inputs).roles.groups, "E=0,2/W=1,3");
}

}  // namespace
}  // namespace tandem::test
