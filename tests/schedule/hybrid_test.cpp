// Strategy `hybrid`: what must hold for its plans, what it does in which order, what it refuses.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/schedule/strategies/common/stages.h"
#include "core/schedule/strategies/hybrid/hybrid.h"
#include "tests/schedule/frozen_layers.h"
#include "tests/schedule/plan_checks.h"
#include "tests/schedule/plan_promises.h"

namespace tandem::test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

struct HybridCase {
  int conv, fc;
  bool normalized = false;
  bool clips = false;  // and adds up two batches
  bool extended = false;
};

StrategyInputs hybrid_inputs(const Net& net, int conv, int fc) {
  StrategyInputs inputs = inputs_of(net, conv + fc);
  inputs.options["conv_devices"] = conv;
  inputs.options["fc_devices"] = fc;
  return inputs;
}

Plan hybrid_plan(const HybridCase& which) {
  static const Net plain = small_net(9), normalized = normalised_net(9);
  StrategyInputs inputs =
      hybrid_inputs(which.normalized ? normalized : plain, which.conv, which.fc);
  inputs.needs_norms = inputs.clips_gradients = which.clips;
  if (which.extended) inputs.options["fc_memory"] = "extended";
  inputs.micro_batches_per_step = which.clips ? 2 : 1;
  return build_plan("hybrid", inputs);
}

class HybridPlan : public testing::TestWithParam<HybridCase> {};

INSTANTIATE_TEST_SUITE_P(
    Roles, HybridPlan,
    testing::Values(HybridCase{1, 1}, HybridCase{2, 1}, HybridCase{3, 1}, HybridCase{2, 2},
                    HybridCase{4, 2}, HybridCase{3, 3}, HybridCase{1, 1, true},
                    HybridCase{2, 1, true}, HybridCase{2, 2, true}, HybridCase{1, 1, false, true},
                    HybridCase{2, 1, false, true}, HybridCase{2, 2, false, true},
                    HybridCase{1, 1, false, false, true}, HybridCase{2, 2, true, false, true},
                    HybridCase{2, 1, false, true, true}),
    [](const testing::TestParamInfo<HybridCase>& info) {
      return fmt::format("{}_and_{}{}{}{}", info.param.conv, info.param.fc,
                         info.param.normalized ? "_normalised" : "",
                         info.param.clips ? "_clipped" : "",
                         info.param.extended ? "_extended" : "");
    });

TEST_P(HybridPlan, HasNoRace) {
  expect_no_race(hybrid_plan(GetParam()));
}
TEST_P(HybridPlan, HasNoWaitThatCouldBeLeftOut) {
  expect_each_wait_needed(hybrid_plan(GetParam()), GetParam().conv + GetParam().fc > 4 ? 7 : 1);
}
TEST_P(HybridPlan, ReadsNoTransientMemoryBeforeItIsWritten) {
  expect_written_before_read(hybrid_plan(GetParam()));
}
TEST_P(HybridPlan, TellsEveryDeviceThatUpdatesOfTheLoss) {
  expect_updates_know_of_the_loss(hybrid_plan(GetParam()));
}
TEST_P(HybridPlan, ComputesOnTheComputeStreamsAndMovesOnTheOthers) {
  expect_passes_on_compute_streams_only(hybrid_plan(GetParam()));
}

TEST_P(HybridPlan, ComputesConvolutionsOnConvDevicesAndTheRestOnFcDevices) {
  const Plan plan = hybrid_plan(GetParam());
  const int conv = GetParam().conv;
  for (const Task& task : plan.tasks) {
    if (!std::holds_alternative<LayerWork>(task.work)) continue;
    const bool is_boundary_layer = task.label.find(" conv2 ") != std::string::npos;
    const bool is_below =
        task.label.find("1 ") != std::string::npos && task.label.find("fc1") == std::string::npos;
    const bool on_conv = task.streams[0].device < conv;
    if (is_boundary_layer) {
      EXPECT_EQ(on_conv, task.stage == Stage::forward) << task.label;
    } else {
      EXPECT_EQ(on_conv, is_below) << task.label;
    }
  }
}

TEST(Hybrid, SendsTheLastConvolutionsInputWhileItIsComputed) {
  const Plan plan = hybrid_plan({2, 1});
  const Task& send = task(plan, "send pool1 @1->@2");
  EXPECT_EQ(send.stage, stages::send_activations);
  EXPECT_LT(find_task(plan, "send pool1 @1->@2"), find_task(plan, "forward conv2 @1"));
  EXPECT_LT(find_task(plan, "forward conv2 @1"), find_task(plan, "send conv2 @1->@2"));
}

TEST(Hybrid, SendsBackActivationGradientsAndTheAveragedGradientAndBothUpdateTheirCopies) {
  const Plan plan = hybrid_plan({2, 2});
  int before = -1;
  for (const char* label :
       {"backward_weights conv2 @3", "backward_data conv2 @3",
        "send conv2 activation gradients @3->@1", "add conv2 gradients part 0 @2",
        "update conv2 @3", "send averaged conv2 gradients @3->@1", "update conv2 @1",
        "backward_weights conv1 @1", "update conv1 @1"}) {
    EXPECT_LT(before, find_task(plan, label)) << label;
    before = find_task(plan, label);
  }
  EXPECT_EQ(find_task(plan, "backward_weights conv2 @1"), -1);
}

// On a slow link: the conv devices wait for them.
TEST(Hybrid, SendsBackActivationGradientsBeforeItSumsTheFcGradients) {
  const Net net = small_net(9);
  StrategyInputs inputs = hybrid_inputs(net, 2, 2);
  inputs.link.bandwidth = 1e6;
  const Plan plan = build_plan("hybrid", inputs);
  int before = -1;
  for (const char* label :
       {"send conv2 activation gradients @3->@1", "add conv2 gradients part 0 @2",
        "add fc1 gradients part 0 @2", "add fc2 gradients part 0 @2"}) {
    const int at = find_task(plan, label);
    EXPECT_LT(before, at) << label;
    before = at;
  }
}

// Two convolutions of the data, which a third one takes as its inputs.
Net two_branch_net() {
  FakeNet chain("branches", 8, {1, 3, 8, 8});
  chain.convolution("conv1", 3, 3, 1, 1).convolution("conv2", 3, 3, 1, 1);
  Net net = chain.convolution("conv3", 4, 3, 1, 1).inner_product("fc1", 10).loss().finish();
  Layer& second = net.layers[size_t(net.find_layer("conv2"))];
  Layer& joins = net.layers[size_t(net.find_layer("conv3"))];
  joins.inputs.push_back(second.inputs[0]);  // conv1's output
  second.inputs = {net.data};
  second.wants_backward_data = false;
  return net;
}

TEST(Hybrid, SendsBackTheGradientsOfEveryInputOfTheLastConvolution) {
  const Net net = two_branch_net();
  const Plan plan = build_plan("hybrid", hybrid_inputs(net, 1, 1));
  const auto& send = std::get<CopyWork>(task(plan, "send conv3 activation gradients @1->@0").work);
  ASSERT_EQ(send.segments.size(), 2U);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(plan.bytes(send.segments[i].source), 8 * 3 * 8 * 8 * 4);
    EXPECT_EQ(plan.buffers[size_t(send.segments[i].target.buffer)].name,
              i == 0 ? "conv2 output gradient" : "conv1 output gradient");
  }
  expect_written_before_read(plan);
  expect_no_race(plan);
}

TEST(Hybrid, GivesEachFcDeviceTheRowsOfItsConvDevices) {
  const Plan plan = hybrid_plan({4, 2});
  const auto& copy = std::get<CopyWork>(task(plan, "send conv2 @3->@5").work);
  const auto& use =
      plan.bindings[size_t(std::get<LayerWork>(task(plan, "forward fc1 @5").work).binding)];
  EXPECT_EQ(use.rows.begin, 5);  // 3, 2, 2 and 2 rows
  EXPECT_EQ(use.rows.end, 9);
  EXPECT_EQ(plan.bytes(copy.segments[0].source), 2 * 20 * 8 * 8 * 4);
  EXPECT_EQ(copy.segments[0].target.offset, 2 * 20 * 8 * 8 * 4);
}

TEST(Hybrid, CopiesNoImagesToFcDevices) {
  const Plan plan = hybrid_plan({1, 1});
  EXPECT_EQ(std::get<CopyWork>(task(plan, "copy input @0").work).segments.size(), 3U);
  EXPECT_EQ(std::get<CopyWork>(task(plan, "copy input @1").work).segments.size(), 2U);
}

TEST(Hybrid, SaysWhereTheNewestWeightsAreAndTestingGathersThem) {
  const Net net = small_net(9), test = small_net(9, TANDEM_TEST);
  const Plan plan = build_plan("hybrid", hybrid_inputs(net, 2, 1));
  ASSERT_EQ(plan.weights_at.size(), 2U);
  EXPECT_EQ(plan.weights_at[0].device, 0);
  EXPECT_EQ(plan.weights_at[1].device, 2);
  EXPECT_EQ(plan.weights_at[1].interval.end,
            (net.weights.back().offset + net.weights.back().count) * 4);
  StrategyInputs inputs = inputs_of(test, 3);
  inputs.weights_at = plan.weights_at;
  const Plan testing = build_testing_plan(inputs);
  for (const char* label : {"broadcast weights @0->@1", "broadcast weights @0->@2",
                            "broadcast weights @2->@0", "broadcast weights @2->@1"}) {
    EXPECT_GE(find_task(testing, label), 0) << label;
  }
  expect_no_race(testing);
}

TEST(Hybrid, ClippedUpdatesWaitForTheNormsOfBothParts) {
  const Plan plan = hybrid_plan({1, 1, false, true});
  for (const char* norms : {"send norms @0->@1", "send norms @1->@0"}) {
    EXPECT_LT(find_task(plan, norms), find_task(plan, "update conv1 @0"));
    EXPECT_LT(find_task(plan, norms), find_task(plan, "update fc2 @1"));
    EXPECT_LT(find_task(plan, "norms conv1 @0"), find_task(plan, norms));
  }
}

TEST(Hybrid, KeepsTheFcDevicesStateInExtendedMemoryAndBringsItInPieces) {
  const Plan plan = hybrid_plan({2, 1, false, false, true});
  EXPECT_EQ(plan.find_buffer("state", 2), -1);
  EXPECT_GE(plan.find_buffer("state", 0), 0);
  const int outside = plan.find_buffer("extended state", 2);
  ASSERT_GE(outside, 0);
  EXPECT_TRUE(plan.buffers[size_t(outside)].is_extended);
  for (const StatePlacement& part : plan.state_at) EXPECT_EQ(part.is_extended, part.device == 2);
  int before = -1;
  for (const char* label :
       {"load state of fc1 part 0 @2", "update fc1 part 0 @2", "store state of fc1 part 0 @2",
        "load state of fc1 part 1 @2", "update fc1 part 1 @2"}) {
    EXPECT_LT(before, find_task(plan, label)) << label;
    before = find_task(plan, label);
  }
  // The second piece comes while the first is updated: it has a window of its own.
  const auto target = [&](const char* label) {
    return std::get<CopyWork>(task(plan, label).work).segments[0].target.buffer;
  };
  EXPECT_NE(target("load state of fc1 part 0 @2"), target("load state of fc1 part 1 @2"));
  EXPECT_EQ(target("load state of fc1 part 0 @2"), target("load state of fc1 part 2 @2"));
  const MemoryPlan memory = plan_memory(plan);
  EXPECT_GT(memory.extended_bytes[2], 0);
  EXPECT_EQ(memory.extended_bytes[0], 0);
}

TEST(Hybrid, RefusesAnUnknownMemory) {
  const Net net = small_net(9);
  StrategyInputs inputs = hybrid_inputs(net, 1, 1);
  inputs.options["fc_memory"] = "extend";
  EXPECT_THAT(message_of([&] { (void)build_plan("hybrid", inputs); }),
              AllOf(HasSubstr("--fc-memory extend"), HasSubstr("device, extended, numa:N")));
}

TEST(Hybrid, KeepsWeightsAndGradientsOfFcDevicesInTheMemoryThatIsNamed) {
  const Net net = small_net(9);
  StrategyInputs inputs = hybrid_inputs(net, 2, 1);
  inputs.options["fc_memory"] = "numa:3";
  const Plan plan = build_plan("hybrid", inputs);
  for (const char* name : {"weights", "gradients", "extended state"}) {
    const Buffer& buffer = plan.buffer(plan.find_buffer(name, 2));
    EXPECT_EQ(buffer.memory, "numa:3") << name;
    EXPECT_EQ(buffer.kind, BufferKind::persistent) << name;
  }
  for (const char* name : {"weights", "gradients", "state"}) {
    EXPECT_EQ(plan.buffer(plan.find_buffer(name, 0)).memory, "") << name;
  }
  const MemoryPlan memory = plan_memory(plan);
  EXPECT_GT(memory.extended_bytes[2], plan.buffer(plan.find_buffer("weights", 2)).bytes);
  EXPECT_EQ(memory.extended_bytes[0], 0);
  expect_no_race(plan);
  expect_written_before_read(plan);
}

TEST(Hybrid, ChoosesDevicesByTheCostsAndTakesWhatItIsTold) {
  const Net net = small_net(12);
  StrategyInputs inputs = inputs_of(net, 4);
  CostTable costs;
  for (const Layer& layer : net.layers) {
    for (const char* pass : {"forward", "backward_data", "backward_weights"}) {
      const bool fc = layer.name.starts_with("fc");
      costs.set(fmt::format("{} {}", layer.name, pass), {fc ? 1.0 : 0.01, 12, 0});
    }
  }
  inputs.costs = &costs;
  const Plan plan = build_plan("hybrid", inputs);
  EXPECT_EQ(hybrid_options().read(plan.options).conv_devices, 2);
  EXPECT_EQ(hybrid_options().read(plan.options).fc_devices, 2);
  inputs.options["fc_devices"] = 1;
  EXPECT_EQ(hybrid_options().read(build_plan("hybrid", inputs).options).conv_devices, 3);
}

std::string hybrid_refusal(const StrategyInputs& inputs) {
  return message_of([&] { (void)build_plan("hybrid", inputs); });
}

TEST(Hybrid, RefusesDevicesThatDoNotFitEachOther) {
  const Net net = small_net(9);
  EXPECT_THAT(hybrid_refusal(inputs_of(net, 1)), HasSubstr("needs at least 2 devices"));
  StrategyInputs inputs = hybrid_inputs(net, 3, 2);
  EXPECT_THAT(hybrid_refusal(inputs),
              AllOf(HasSubstr("--conv-devices 3 and --fc-devices 2"),
                    HasSubstr("on 5 devices strategy 'hybrid' can have 4 and 1")));
  inputs.options["fc_devices"] = -1;
  EXPECT_THAT(hybrid_refusal(inputs),
              HasSubstr("--fc-devices -1: it must be a whole number of at least 1"));
  const Net two = small_net(2);
  EXPECT_THAT(hybrid_refusal(hybrid_inputs(two, 3, 1)),
              HasSubstr("batch 2 is smaller than the 3 conv"));
}

TEST(Hybrid, RefusesNetsThatAreNotConvolutionsAndThenFcLayers) {
  const Net dense = FakeNet("dense", 8, {1, 1, 4, 4}).inner_product("fc1", 16).loss().finish();
  EXPECT_THAT(hybrid_refusal(inputs_of(dense, 2)),
              AllOf(HasSubstr("no convolution before"), HasSubstr("'fc1'")));
  const Net conv = FakeNet("conv", 8, {1, 1, 4, 4}).convolution("conv1", 2, 3).loss().finish();
  EXPECT_THAT(hybrid_refusal(inputs_of(conv, 2)), HasSubstr("no fully connected layer"));
  Net around = small_net(8);
  around.layers[size_t(around.find_layer("fc2"))].inputs.push_back(
      around.layers[size_t(around.find_layer("pool1"))].outputs[0]);
  EXPECT_THAT(
      hybrid_refusal(inputs_of(around, 2)),
      AllOf(HasSubstr("layer 'fc2' (InnerProduct)"), HasSubstr("before the last convolution")));
}

// The second pooling joins what the last convolution makes and what passes it by.
TEST(Hybrid, DividesWhereBranchesJoinAndHandsOverNoConvolutionThen) {
  Net around = small_net(8);
  around.layers[size_t(around.find_layer("pool2"))].inputs.push_back(
      around.layers[size_t(around.find_layer("pool1"))].outputs[0]);
  const Plan plan = build_plan("hybrid", hybrid_inputs(around, 1, 1));
  for (const char* label : {"forward pool2 @0", "send pool2 @0->@1", "forward fc1 @1",
                            "send pool2 activation gradients @1->@0", "backward_data pool2 @0",
                            "backward_weights conv2 @0"}) {
    EXPECT_GE(find_task(plan, label), 0) << label;
  }
  EXPECT_EQ(find_task(plan, "forward conv2 @1"), -1);
  EXPECT_THAT(plan.notes[0], HasSubstr("layers up to 'pool2', which joins the last convolutions"));
  expect_no_race(plan);
  expect_written_before_read(plan);
}

// A head that reads the first pooling's output.
TEST(Hybrid, LeavesAuxiliaryHeadsWithTheConvDevicesAndRunsThemWhileTheOthersCompute) {
  FakeNet chain("heads", 8, {1, 3, 16, 16});
  chain.convolution("conv1", 4, 3, 1, 1)
      .relu("relu1")
      .inner_product("aux", 4)
      .loss("aux_loss", 0.3);
  chain.convolution("conv2", 4, 1).inner_product("fc1", 10).loss();
  Net net = chain.finish();
  Layer& conv2 = net.layers[size_t(net.find_layer("conv2"))];
  conv2.inputs = {net.layer(net.find_layer("relu1")).outputs[0]};
  const Plan plan = build_plan("hybrid", hybrid_inputs(net, 2, 2));
  int before = -1;
  for (const char* label :
       {"forward aux @1", "send conv2 @1->@3", "send aux_loss @0->@2", "send aux_loss @1->@2",
        "add aux_loss @2", "check aux_loss @2", "backward_weights aux @1",
        "backward_weights fc1 @3", "backward_weights conv1 @1"}) {
    const int at = find_task(plan, label);
    EXPECT_LT(before, at) << label;
    before = at;
  }
  EXPECT_EQ(find_task(plan, "forward aux @2"), -1);
  EXPECT_THAT(plan.notes, Contains("auxiliary heads on devices 0 to 1"));
  expect_no_race(plan);
  expect_written_before_read(plan);
}

TEST(Hybrid, HasOptionsThatOtherStrategiesRefuse) {
  const Net net = small_net(8);
  const std::string message =
      message_of([&] { (void)build_plan("two_phase", hybrid_inputs(net, 1, 1)); });
  EXPECT_THAT(message, HasSubstr("--conv-devices is an option of strategy 'hybrid'"));
}

TEST(Hybrid, LeavesFrozenLayersAlone) {
  expect_frozen_layers_left_alone("hybrid");
}

}  // namespace
}  // namespace tandem::test
