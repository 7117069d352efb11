// two_phase as docs/design/strategies.md §1 has it: stages, streams, order, bytes.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "core/schedule/builder/plan_builder.h"
#include "core/schedule/plan/buffers.h"
#include "core/schedule/report/report.h"
#include "core/schedule/strategies/common/fastest_variant.h"
#include "core/schedule/strategies/common/stages.h"
#include "tests/schedule/plan_checks.h"
#include "tests/support/races.h"

namespace tandem::test {
namespace {

using testing::ElementsAre;

// The new FC weights exist at once when their gradients do.
CostTable fast_updates() {
  CostTable costs;
  for (const char* key : {"add", "update"}) costs.set(key, {0, 0, 0});
  return costs;
}

Plan two_phase(const Net& net, int devices, bool hidden, const std::string& split = "fc1") {
  StrategyInputs inputs = inputs_of(net, devices);
  inputs.options["split"] = split;
  inputs.options["hidden_broadcast"] = hidden;
  const CostTable costs = fast_updates();
  inputs.costs = &costs;
  inputs.link.bandwidth = 1e13;
  return build_plan("two_phase", inputs);
}

// Bytes of the weights of these layers, padding left out.
int64_t bytes_of(const Net& net, const std::vector<std::string>& layers) {
  int64_t bytes = 0;
  for (const WeightArray& weight : net.weights) {
    for (const std::string& layer : layers) {
      if (net.layers[size_t(weight.layer)].name == layer) bytes += weight.count * 4;
    }
  }
  return bytes;
}

int64_t copied(const Plan& plan, const std::string& label) {
  int64_t bytes = 0;
  for (const CopySegment& segment : std::get<CopyWork>(task(plan, label).work).segments) {
    bytes += plan.bytes(segment.source);
  }
  return bytes;
}

TEST(TwoPhase, WithPlainBroadcastRunsTheStagesInTheOrderOfTheTable) {
  const Net net = small_net(8);
  const Plan plan = two_phase(net, 2, false);
  EXPECT_THAT(labels(plan, {0, StreamKind::communication}),
              ElementsAre("broadcast weights @0->@1", "send metrics @1->@0", "add metrics @0",
                          "check loss @0", "report @0", "send fc gradients @1->@0",
                          "add fc gradients @0", "update fc @0", "send conv gradients @1->@0",
                          "add conv gradients @0", "update conv @0"));
  EXPECT_THAT(labels(plan, {1, StreamKind::communication}),
              ElementsAre("broadcast weights @0->@1", "send metrics @1->@0",
                          "send fc gradients @1->@0", "send conv gradients @1->@0"));
}

TEST(TwoPhase, ComputesForwardThenTheFcPartThenTheConvPart) {
  const Net net = small_net(8);
  const Plan plan = two_phase(net, 2, true);
  for (int device = 0; device < 2; ++device) {
    std::vector<Stage> stages;
    for (const Task& task : plan.tasks) {
      if (task.streams.front() == StreamId{device, StreamKind::compute} &&
          (stages.empty() || stages.back() != task.stage)) {
        stages.push_back(task.stage);
      }
    }
    EXPECT_THAT(stages, ElementsAre(Stage::forward, stages::backward_fc, stages::backward_conv));
  }
  EXPECT_EQ(plan.split_layer, "fc1");
  EXPECT_EQ(task(plan, "backward_data fc1 @1").stage, stages::backward_fc);
  EXPECT_EQ(task(plan, "backward_data pool2 @1").stage, stages::backward_conv);
}

// A search emits the tasks of every place again, and takes passes from the plan before.
TEST(PlanBuilder, RestartedGivesTheTasksOfANewOne) {
  const Net net = normalised_net(8);
  const StrategyInputs inputs = inputs_of(net, 2);
  std::vector<int> trained;
  for (size_t i = 0; i < net.weights.size(); ++i) {
    if (net.weights[i].trained()) trained.push_back(static_cast<int>(i));
  }
  const auto emit = [&](PlanBuilder& builder, int split) {
    stages::emit_inputs(builder);
    stages::emit_forward(builder);
    stages::emit_report(builder, true);
    const int layers = static_cast<int>(net.layers.size());
    stages::emit_backward(builder, split, layers, stages::backward_fc);
    stages::emit_broadcast(builder, "weights", -1, {all_weights(net)}, When::last_micro_batch);
    stages::emit_backward(builder, 0, split, stages::backward_conv);
    builder.emit_update("update @0", stages::update_conv, 0, trained);
  };
  PlanBuilder made(inputs, "two_phase", PlanBuilder::Purpose::training), other = made;
  emit(made, 3);
  const auto passes_of = [](const Plan& plan) {
    std::vector<const void*> memory;
    for (const Task& task : plan.tasks) {
      if (std::holds_alternative<LayerWork>(task.work)) memory.push_back(task.reads.data());
    }
    std::sort(memory.begin(), memory.end());
    return memory;
  };
  const std::vector<const void*> passes = passes_of(made.plan());
  made.restart();
  emit(made, 6);
  emit(other, 6);
  EXPECT_EQ(passes_of(made.plan()), passes) << "a pass was made again";
  EXPECT_EQ(to_text(made.plan()), to_text(other.plan()));
  const auto state_bytes = [](const Plan& plan) {
    return plan.buffers.at(size_t(plan.find_buffer(buffers::state, 0))).bytes;
  };
  EXPECT_EQ(state_bytes(made.plan()), state_bytes(other.plan()));
}

TEST(TwoPhase, HiddenBroadcastSendsFcWeightsAtOnceAndConvWeightsLayerByLayer) {
  const Net net = small_net(8);
  const Plan plan = two_phase(net, 2, true);
  EXPECT_THAT(labels(plan, {1, StreamKind::communication}),
              ElementsAre("send metrics @1->@0", "send fc gradients @1->@0",
                          "broadcast fc weights @0->@1", "send conv gradients @1->@0",
                          "broadcast conv1 @0->@1", "broadcast conv2 @0->@1"));
  EXPECT_EQ(copied(plan, "broadcast conv1 @0->@1"), bytes_of(net, {"conv1"}));
}

// The convolutions' gradients are next on the stream when their backward pass ends.
TEST(TwoPhase, BroadcastsEarlyOnlyWhatDelaysNoGradients) {
  const Net net = alexnet(8);
  StrategyInputs inputs = inputs_of(net, 2);
  inputs.options["split"] = "fc6";
  inputs.link.bandwidth = 1e8;
  const Plan slow = build_plan("two_phase", inputs);
  EXPECT_EQ(find_task(slow, "broadcast fc weights @0->@1"), -1);
  int before = find_task(slow, "send conv gradients @1->@0");
  for (const char* layer : {"conv1", "conv5", "fc6", "fc7", "fc8"}) {
    const int at = find_task(slow, fmt::format("broadcast {} @0->@1", layer));
    EXPECT_LT(before, at) << layer;
    before = at;
  }
  const Plan fast = two_phase(net, 2, true, "fc6");
  EXPECT_LT(find_task(fast, "broadcast fc weights @0->@1"),
            find_task(fast, "send conv gradients @1->@0"));
  EXPECT_EQ(find_task(fast, "broadcast fc6 @0->@1"), -1);
}

TEST(TwoPhase, SendsTheFcPartAndTheConvPartAndNothingTwice) {
  const Net net = alexnet(8);
  const Plan plan = two_phase(net, 2, true, "fc6");
  EXPECT_EQ(copied(plan, "send fc gradients @1->@0"), bytes_of(net, {"fc6", "fc7", "fc8"}));
  EXPECT_EQ(copied(plan, "broadcast fc weights @0->@1"), bytes_of(net, {"fc6", "fc7", "fc8"}));
  EXPECT_EQ(copied(plan, "send conv gradients @1->@0"),
            bytes_of(net, {"conv1", "conv2", "conv3", "conv4", "conv5"}));
}

TEST(TwoPhase, SendsGradientsAsCollectivesOfBothCommunicationStreams) {
  const Net net = small_net(8);
  const Plan plan = two_phase(net, 3, true);
  EXPECT_THAT(
      task(plan, "send fc gradients @2->@0").streams,
      ElementsAre(StreamId{0, StreamKind::communication}, StreamId{2, StreamKind::communication}));
}

TEST(TwoPhase, AddsTheGradientsInTheOrderOfTheDevices) {
  const Net net = small_net(8);
  const Plan plan = two_phase(net, 4, true);
  const auto& add = std::get<AddWork>(task(plan, "add conv gradients @0").work);
  std::vector<std::string> sources;
  for (const Region& source : add.sources) {
    sources.push_back(plan.buffers[size_t(source.buffer)].name);
  }
  EXPECT_THAT(sources, ElementsAre("received gradients @1", "received gradients @2",
                                   "received gradients @3"));
  EXPECT_EQ(plan.buffers[size_t(add.target.buffer)].name, buffers::gradients);
}

TEST(TwoPhase, LetsConvolutionsGoBackwardWhileFcGradientsTravel) {
  const Net net = small_net(8);
  const Plan plan = two_phase(net, 2, true);
  const std::set<Stage> moving{stages::send_fc_gradients, stages::update_fc};
  for (const Task& task : plan.tasks) {
    if (task.stage != stages::backward_conv) continue;
    for (const Dependency& wait : task.after) {
      if (wait.micro_batches_back != 0) continue;
      EXPECT_FALSE(moving.contains(plan.tasks[size_t(wait.task)].stage))
          << task.label << " waits for " << plan.tasks[size_t(wait.task)].label;
    }
  }
}

TEST(TwoPhase, UpdatesEveryTrainedWeightOnce) {
  const Net net = small_net(8);
  const Plan plan = two_phase(net, 2, true);
  std::multiset<int> updated;
  for (const Task& task : plan.tasks) {
    if (const auto* update = std::get_if<UpdateWork>(&task.work)) {
      for (const ArrayUpdate& array : update->arrays) updated.insert(array.weight);
    }
  }
  std::multiset<int> all;
  for (size_t i = 0; i < net.weights.size(); ++i) all.insert(static_cast<int>(i));
  EXPECT_EQ(updated, all);
}

TEST(TwoPhase, LeavesFrozenWeightsAlone) {
  const Net net = FakeNet("net", 8, {1, 3, 16, 16})
                      .convolution("conv1", 16, 3)
                      .convolution("conv2", 16, 3)
                      .convolution("conv3", 16, 3)
                      .inner_product("fc", 16)
                      .loss()
                      .freeze("conv2")
                      .finish();
  const Plan plan = two_phase(net, 2, true, "fc");
  EXPECT_EQ(find_task(plan, "broadcast conv2 @0->@1"), -1);
  EXPECT_EQ(copied(plan, "send conv gradients @1->@0"), bytes_of(net, {"conv1", "conv3"}));
  const auto& update = std::get<UpdateWork>(task(plan, "update conv @0").work);
  std::vector<int> updated;
  for (const ArrayUpdate& array : update.arrays) updated.push_back(array.weight);
  EXPECT_THAT(updated, ElementsAre(0, 1, 4, 5));
  EXPECT_TRUE(find_races(plan).empty());
}

TEST(TwoPhase, WithOneLayerOfWeightsHasOnlyAnFcPart) {
  const Net net =
      FakeNet("net", 8, {1, 1, 4, 4}).relu("relu").inner_product("fc", 16).loss().finish();
  const Plan plan = two_phase(net, 2, true, "auto");
  EXPECT_GE(find_task(plan, "update fc @0"), 0);
  EXPECT_EQ(find_task(plan, "update conv @0"), -1);
  EXPECT_THAT(plan.notes.front(), testing::HasSubstr("'fc' is the only layer with weights"));
}

TEST(TwoPhase, OnOneDeviceNeitherSendsNorBroadcasts) {
  const Net net = small_net(8);
  const Plan plan = two_phase(net, 1, true);
  EXPECT_THAT(labels(plan, {0, StreamKind::communication}),
              ElementsAre("check loss @0", "report @0", "update fc @0", "update conv @0"));
}

TEST(WeightRanges, JoinNeighborsAndLeaveOutWhatLiesBetween) {
  const Net net = small_net(8);  // counts 432 16 2880 20 16000 50 ...
  const std::vector<Interval> joined = weight_ranges(net, {1, 0});
  ASSERT_EQ(joined.size(), 1U);
  EXPECT_EQ(joined[0].begin, 0);
  EXPECT_EQ(joined[0].end, (432 + 16) * 4);
  const std::vector<Interval> apart = weight_ranges(net, {0, 2, 3, 4});
  ASSERT_EQ(apart.size(), 2U);
  EXPECT_EQ(apart[1].begin, net.weights[2].offset * 4);
  EXPECT_EQ(apart[1].end, (net.weights[4].offset + net.weights[4].count) * 4);
}

TEST(TwoPhase, InANetOfManyLayersTheSplitIsNoSlowerThanSpacedOnes) {
  FakeNet layers("deep", 4, {1, 4, 1, 1});
  for (int i = 0; i < 600; ++i) layers.inner_product("fc" + std::to_string(i), i < 300 ? 4 : 8);
  const Net net = layers.loss().finish();
  const CostTable costs;
  const auto seconds = [&](const std::string& split) {
    StrategyInputs inputs = inputs_of(net, 2);
    inputs.costs = &costs;
    inputs.options["split"] = split;
    return simulated_step_seconds(inputs, build_plan("two_phase", inputs));
  };
  const double chosen = seconds("auto");
  for (const int i : {1, 100, 200, 300, 400, 500, 599}) {
    EXPECT_LE(chosen, seconds("fc" + std::to_string(i))) << i;
  }
}

}  // namespace
}  // namespace tandem::test
