// Strategy `fc_parallel`: what must hold for its plans, what it does in which order, what it
// refuses.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/schedule/strategies/composed/rounds.h"
#include "core/schedule/strategies/fc_parallel/fc_parallel.h"
#include "tests/schedule/frozen_layers.h"
#include "tests/schedule/plan_checks.h"
#include "tests/schedule/plan_promises.h"

namespace tandem::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

StrategyInputs fc_parallel_inputs(const Net& net, int devices, int quota) {
  StrategyInputs inputs = inputs_of(net, devices);
  inputs.options["quota"] = quota;
  return inputs;
}

struct FcParallelCase {
  int devices, quota;
  bool convolutions;
  bool clips = false;  // and adds up two batches
  bool eager = false;
};

Plan fc_parallel_plan(const FcParallelCase& which) {
  static const Net convolutions = small_net(9);
  StrategyInputs inputs = fc_parallel_inputs(which.convolutions ? convolutions : dense_net(),
                                             which.devices, which.quota);
  inputs.options["eager"] = which.eager;
  inputs.needs_norms = inputs.clips_gradients = which.clips;
  inputs.micro_batches_per_step = which.clips ? 2 : 1;
  return build_plan("fc_parallel", inputs);
}

std::vector<FcParallelCase> fc_parallel_cases() {
  std::vector<FcParallelCase> result;
  for (int devices = 2; devices <= 4; ++devices) {
    for (int quota = 1; quota <= devices; ++quota) {
      result.push_back({devices, quota, false});
      result.push_back({devices, quota, true});
    }
    result.push_back({devices, devices, devices % 2 == 0, true});
    for (int quota = devices == 4 ? 2 : 1; quota < devices; ++quota) {
      result.push_back({devices, quota, quota == 1, false, true});
    }
  }
  return result;
}

class FcParallelPlan : public testing::TestWithParam<FcParallelCase> {};

INSTANTIATE_TEST_SUITE_P(Quotas, FcParallelPlan, testing::ValuesIn(fc_parallel_cases()),
                         [](const testing::TestParamInfo<FcParallelCase>& info) {
                           return fmt::format("{}_devices_quota_{}{}{}{}", info.param.devices,
                                              info.param.quota,
                                              info.param.convolutions ? "_convolutions" : "",
                                              info.param.clips ? "_clipped" : "",
                                              info.param.eager ? "_eager" : "");
                         });

TEST_P(FcParallelPlan, HasNoRace) {
  expect_no_race(fc_parallel_plan(GetParam()));
}
TEST_P(FcParallelPlan, HasNoWaitThatCouldBeLeftOut) {
  expect_each_wait_needed(fc_parallel_plan(GetParam()), GetParam().devices == 2 ? 1 : 17);
}
TEST_P(FcParallelPlan, ReadsNoTransientMemoryBeforeItIsWritten) {
  expect_written_before_read(fc_parallel_plan(GetParam()));
}
TEST_P(FcParallelPlan, TellsEveryDeviceThatUpdatesOfTheLoss) {
  expect_updates_know_of_the_loss(fc_parallel_plan(GetParam()));
}
TEST_P(FcParallelPlan, ComputesOnTheComputeStreamsAndMovesOnTheOthers) {
  expect_passes_on_compute_streams_only(fc_parallel_plan(GetParam()));
}

TEST_P(FcParallelPlan, NeverSendsGradientsOfDividedLayers) {
  if (GetParam().clips) return;
  const Plan plan = fc_parallel_plan(GetParam());
  for (const Task& task : plan.tasks) {
    if (!std::holds_alternative<CopyWork>(task.work)) continue;
    if (task.label.find("activation gradients") != std::string::npos) continue;
    EXPECT_FALSE(task.label.find("fc") != std::string::npos &&
                 task.label.find("gradients") != std::string::npos)
        << task.label;
  }
}

const PlanBinding& use(const Plan& plan, const std::string& label) {
  return plan.bindings[size_t(std::get<LayerWork>(task(plan, label).work).binding)];
}

TEST(FcParallel, DividesNeuronsEvenlyWithTheirWeightsAndUpdatesThemInParallel) {
  const Plan plan = fc_parallel_plan({4, 4, false});
  const PlanBinding& fc1 = use(plan, "forward fc1 @1");
  EXPECT_EQ(fc1.slice.begin, 6);
  EXPECT_EQ(fc1.slice.end, 11);
  EXPECT_EQ(fc1.rows.count(), 9);
  EXPECT_EQ(plan.bytes(fc1.weights[0]), 5 * 25 * 4);
  const auto& update = std::get<UpdateWork>(task(plan, "update fc1 @1").work);
  ASSERT_EQ(update.arrays.size(), 2U);
  EXPECT_EQ(update.arrays[0].weights.offset, 6 * 25 * 4);
  EXPECT_EQ(plan.bytes(update.arrays[0].weights), 5 * 25 * 4);
  EXPECT_EQ(plan.bytes(update.arrays[1].weights), 5 * 4);
}

TEST(FcParallel, TakesTheInputPartByPartInAFixedOrderBeginningWithItsOwn) {
  const Plan plan = fc_parallel_plan({3, 3, false});
  int before = -1;
  for (const char* label : {"forward fc2 @1 of @1", "send fc1 @2->@1", "forward fc2 @1 of @2",
                            "send fc1 @0->@1", "forward fc2 @1 of @0", "forward relu2 @1"}) {
    EXPECT_LT(before, find_task(plan, label)) << label;
    before = find_task(plan, label);
  }
  const PlanBinding& own = use(plan, "forward fc2 @1 of @1");
  const PlanBinding& other = use(plan, "forward fc2 @1 of @2");
  EXPECT_FALSE(own.adds_to_output);
  EXPECT_TRUE(other.adds_to_output);
  EXPECT_EQ(other.input_slice.begin, 14);
  EXPECT_EQ(other.input_slice.end, 21);
  EXPECT_EQ(other.outputs[0].buffer, own.outputs[0].buffer);
}

TEST(FcParallel, TakesRowsOfTheConvolutionsOutputPartByPart) {
  const Plan plan = fc_parallel_plan({2, 2, true});
  const PlanBinding& part = use(plan, "forward fc1 @0 of @1");
  EXPECT_EQ(part.rows.begin, 5);
  EXPECT_EQ(part.rows.end, 9);
  EXPECT_LT(find_task(plan, "forward fc1 @0 of @0"), find_task(plan, "send pool2 @1->@0"));
}

TEST(FcParallel, WaitsForAQuotaOfGradientPartsAndRepeatsTheProducts) {
  const Plan all = fc_parallel_plan({3, 3, false}), two = fc_parallel_plan({3, 2, false});
  EXPECT_GE(find_task(all, "backward_data fc2 @0 of @0 round 0"), 0);
  EXPECT_EQ(find_task(all, "backward_data fc2 @0 of @0 round 1"), -1);
  EXPECT_GE(find_task(two, "backward_data fc2 @0 of @0 round 1"), 0);
  EXPECT_EQ(find_task(two, "backward_data fc2 @0 of @0 round 2"), -1);
  const auto& sum = std::get<AddWork>(task(two, "add fc2 activation gradients @0 round 0").work);
  EXPECT_EQ(sum.sources.size(), 1U);  // to the device's own: two parts
  EXPECT_EQ(find_task(two, "add fc2 activation gradients @0 round 1"), -1);
  EXPECT_TRUE(
      std::get<LayerWork>(task(two, "backward_weights fc2 @0 of @0 round 1").work).accumulate);
  int sends = 0;
  for (const Task& task : two.tasks)
    sends += task.label == "send fc1 activation gradients @1->@0" ? 1 : 0;
  EXPECT_EQ(sends, 1) << "the gradients are sent once, after the last round";
}

TEST(FcParallel, EagerSendsGradientsInEveryRoundAndTheLayerUpstreamHasAsManyTimesMore) {
  const Plan plan = fc_parallel_plan({4, 2, false, false, true});
  EXPECT_LT(find_task(plan, "send fc2 activation gradients round 0 @1->@0"),
            find_task(plan, "backward_data fc3 @0 of @0 round 1"));
  for (const char* label :
       {"send fc2 activation gradients round 1 @1->@0", "backward_data fc2 @0 of @0 round 3",
        "send fc1 activation gradients round 3 @1->@0", "backward_weights fc1 @0 round 7"}) {
    EXPECT_GE(find_task(plan, label), 0) << label;
  }
  EXPECT_EQ(find_task(plan, "backward_weights fc1 @0 round 8"), -1);
  // Each round of the layer upstream takes a quota of what one round has sent: half of the rows.
  const auto& sum = std::get<AddWork>(task(plan, "add fc2 activation gradients @0 round 2").work);
  EXPECT_EQ(sum.sources.size(), 1U);
  EXPECT_EQ(use(plan, "backward_data fc2 @0 of @0 round 2").rows.begin, 5);
  EXPECT_EQ(use(plan, "backward_data fc2 @0 of @0 round 1").rows.end, 5);
}

TEST(FcParallel, EagerGivesTheConvolutionsTheSumOfAllRounds) {
  const Plan plan = fc_parallel_plan({2, 1, true, false, true});
  std::vector<std::string> adds;
  for (const Task& task : plan.tasks) {
    if (task.label.starts_with("add pool2 activation gradients @1")) adds.push_back(task.label);
  }
  EXPECT_THAT(adds, testing::ElementsAre("add pool2 activation gradients @1 round 2",
                                         "add pool2 activation gradients @1 round 3"));
  EXPECT_LT(find_task(plan, "keep pool2 activation gradients @1"), find_task(plan, adds[0]));
}

TEST(FcParallel, SumsTheConvolutionsGradientsOverAllDevices) {
  const Plan plan = fc_parallel_plan({2, 2, true});
  for (const char* label :
       {"update conv1 part 0 @0", "update conv1 part 1 @1", "add conv1 part 0 @0"}) {
    EXPECT_GE(find_task(plan, label), 0) << label;
  }
}

TEST(FcParallel, SaysWhereTheNewestWeightsAreAndTestingGathersThem) {
  const Plan plan = fc_parallel_plan({3, 3, true});
  int64_t bytes = 0;
  for (const Placement& place : plan.weights_at) bytes += place.interval.count();
  const Net test = small_net(9, TANDEM_TEST);
  int64_t all = 0;
  for (const WeightArray& array : test.weights) all += array.count * 4;
  EXPECT_EQ(bytes, all);
  StrategyInputs inputs = inputs_of(test, 3);
  inputs.weights_at = plan.weights_at;
  const Plan testing = build_testing_plan(inputs);
  EXPECT_GE(find_task(testing, "broadcast weights @2->@0"), 0);
  expect_no_race(testing);
}

// Of the dense net on three devices of three rows, two parts a round.
const std::vector<Round>& rounds_of(const char* layer, bool eager) {
  const auto make = [](bool is_eager) {
    StrategyInputs inputs = fc_parallel_inputs(dense_net(), 3, 2);
    return BackwardRounds(dense_net(), chains_over_all_devices(inputs).back(), shares_of(9, 3),
                          {2, is_eager});
  };
  static const BackwardRounds late = make(false), early = make(true);
  return (eager ? early : late).of(dense_net().find_layer(layer));
}

TEST(BackwardRounds, OfTheLastLayerHaveRowsOfTheirOwn) {
  for (const bool eager : {false, true}) {
    const std::vector<Round>& rounds = rounds_of("fc3", eager);
    ASSERT_EQ(rounds.size(), 2U);
    EXPECT_EQ(rounds[0].rows, (Interval{0, 6}));
    EXPECT_EQ(rounds[1].rows, (Interval{6, 9}));
    EXPECT_FALSE(rounds[1].adds_to_sent);
    EXPECT_EQ(rounds[0].completes_sent, eager);
    EXPECT_TRUE(rounds[1].completes_sent);
  }
}

TEST(BackwardRounds, OfOtherLayersAddUpForOneReduceScatter) {
  const std::vector<Round>& rounds = rounds_of("fc2", false);
  ASSERT_EQ(rounds.size(), 2U);
  for (const Round& round : rounds) {
    EXPECT_EQ(round.rows, (Interval{0, 9}));
    EXPECT_EQ(round.sent.rows, (Interval{0, 9}));
    EXPECT_EQ(round.sent.name, "");
    EXPECT_EQ(round.adds_to_sent, round.number == 1);
    EXPECT_EQ(round.completes_sent, round.number == 1);
  }
  EXPECT_EQ(rounds[0].parts, (Interval{0, 2}));
  EXPECT_EQ(rounds[1].parts, (Interval{2, 3}));
}

TEST(BackwardRounds, EagerSendEachAndMultiply) {
  const std::vector<Round>& rounds = rounds_of("fc2", true);
  ASSERT_EQ(rounds.size(), 4U);
  for (const Round& round : rounds) {
    EXPECT_EQ(round.received.number, round.number / 2);
    EXPECT_EQ(round.rows, (round.number < 2 ? Interval{0, 6} : Interval{6, 9}));
    EXPECT_EQ(round.sent.rows, round.rows);
    EXPECT_EQ(round.sent.name, "round " + std::to_string(round.number));
    EXPECT_EQ(round.sent.adds, round.number % 2 == 1);
    EXPECT_FALSE(round.adds_to_sent);
    EXPECT_TRUE(round.completes_sent);
  }
  EXPECT_EQ(rounds_of("fc1", true).size(), 8U);
}

std::string fc_parallel_refusal(const StrategyInputs& inputs) {
  return message_of([&] { (void)build_plan("fc_parallel", inputs); });
}

TEST(FcParallel, RefusesQuotasOutOfRangeAndTooFewDevices) {
  EXPECT_THAT(fc_parallel_refusal(fc_parallel_inputs(dense_net(), 3, 4)),
              AllOf(HasSubstr("--quota 4"), HasSubstr("at most 3")));
  EXPECT_THAT(fc_parallel_refusal(fc_parallel_inputs(dense_net(), 3, -1)), HasSubstr("at least 1"));
  EXPECT_THAT(fc_parallel_refusal(inputs_of(dense_net(), 1)), HasSubstr("at least 2 devices"));
}

TEST(FcParallel, RefusesToBeEagerInOneRoundOrInFarTooMany) {
  StrategyInputs inputs = fc_parallel_inputs(dense_net(), 3, 3);
  inputs.options["eager"] = true;
  EXPECT_THAT(fc_parallel_refusal(inputs), AllOf(HasSubstr("--eager with --quota 3 on 3 devices"),
                                                 HasSubstr("a --quota of at most 2")));
  inputs.options["quota"] = 0;
  EXPECT_EQ(fc_parallel_options().read(build_plan("fc_parallel", inputs).options).quota, 2);
  FakeNet deep("deep", 8, {1, 1, 4, 4});
  for (int i = 1; i <= 6; ++i) deep.inner_product("fc" + std::to_string(i), 16);
  const Net net = deep.loss().finish();
  StrategyInputs many = fc_parallel_inputs(net, 4, 1);
  many.options["eager"] = true;
  EXPECT_THAT(fc_parallel_refusal(many), AllOf(HasSubstr("layer 'fc1'"), HasSubstr("4096 rounds"),
                                               HasSubstr("a larger --quota")));
}

TEST(FcParallel, KeepsOfGradientsAndSolverStateWhatADeviceHas) {
  const Net net = dense_net();
  const Plan plan = fc_parallel_plan({3, 3, false});
  for (int device = 0; device < 3; ++device) {
    for (const char* name : {"gradients", "state"}) {
      const int buffer = plan.find_buffer(name, device);
      ASSERT_GE(buffer, 0) << name;
      EXPECT_LT(plan.buffers[size_t(buffer)].bytes, net.weight_floats * 4 * 55 / 100) << name;
    }
  }
}

TEST(FcParallel, RefusesNetsThatItCannotDivide) {
  const Net conv = FakeNet("conv", 8, {1, 1, 4, 4}).convolution("conv1", 2, 3).loss().finish();
  EXPECT_THAT(fc_parallel_refusal(inputs_of(conv, 2)), HasSubstr("net 'conv' has none"));
  const Net narrow = FakeNet("narrow", 8, {1, 1, 4, 4}).inner_product("fc1", 3).loss().finish();
  EXPECT_THAT(fc_parallel_refusal(inputs_of(narrow, 4)),
              AllOf(HasSubstr("layer 'fc1'"), HasSubstr("3 neurons"), HasSubstr("4 devices")));
  const Net shared = FakeNet("shared", 8, {1, 1, 4, 4})
                         .inner_product("fc1", 16)
                         .inner_product("fc2", 16)
                         .inner_product_sharing("fc3", "fc2")
                         .loss()
                         .finish();
  EXPECT_THAT(fc_parallel_refusal(inputs_of(shared, 2)),
              AllOf(HasSubstr("layer 'fc3'"), HasSubstr("shares its weights")));
}

TEST(FcParallel, DividesEveryChainOfFcLayers) {
  const Net net = FakeNet("norm", 9, {1, 1, 5, 5})
                      .inner_product("fc1", 21)
                      .batch_norm("norm1")
                      .inner_product("fc2", 18)
                      .loss()
                      .finish();
  const Plan plan = build_plan("fc_parallel", inputs_of(net, 2));
  EXPECT_EQ(use(plan, "forward fc1 @1").slice, (Interval{11, 21}));
  EXPECT_EQ(use(plan, "forward fc2 @1 of @1").slice, (Interval{9, 18}));
  expect_no_race(plan);
}

// Every pair of devices has a link of its own; those to and from device 1 of device 2 are slow.
TEST(FcParallel, TakesPartsInTheOrderOfTheirArrival) {
  Topology topology;
  constexpr int devices = 4;
  for (int source = 0; source < devices; ++source) {
    topology.devices.push_back(fmt::format("d{}", source));
    topology.speeds.push_back(1);
    for (int target = 0; target < devices; ++target) {
      const bool is_slow = (source == 1 && target == 2) || (source == 2 && target == 1);
      const auto channel = static_cast<uint32_t>(topology.channels.size());
      topology.channels.push_back({fmt::format("{}{}", source, target), is_slow ? 1e9 : 1e10});
      topology.paths.push_back(
          {0, source == target ? std::vector<uint32_t>{} : std::vector<uint32_t>{channel}});
    }
  }
  StrategyInputs inputs = fc_parallel_inputs(dense_net(), devices, devices);
  inputs.topology = &topology;
  const Plan plan = build_plan("fc_parallel", inputs);
  // Alike they would come in the order 1, 2, 3, 0.
  EXPECT_LT(find_task(plan, "forward fc2 @1 of @0"), find_task(plan, "forward fc2 @1 of @2"));
  EXPECT_LT(find_task(plan, "forward fc2 @1 of @3"), find_task(plan, "forward fc2 @1 of @2"));
  EXPECT_LT(find_task(plan, "forward fc2 @0 of @1"), find_task(plan, "forward fc2 @0 of @3"));
  const auto& sum = std::get<AddWork>(task(plan, "add fc2 activation gradients @1 round 0").work);
  const auto slow = plan.find_buffer("fc2 partial gradient of @2", 1);
  EXPECT_EQ(sum.sources.back().buffer, slow);
  expect_no_race(plan);
}

TEST(FcParallel, LeavesFrozenLayersAlone) {
  expect_frozen_layers_left_alone("fc_parallel");
}

// Of many devices small quotas have too many messages to be simulated.
TEST(FcParallel, TriesAllQuotasOfFewDevicesAndTheLargestOnesOfMany) {
  const Net net = FakeNet("wide", 512, {1, 1, 5, 5})
                      .inner_product("fc1", 512)
                      .relu("relu1")
                      .inner_product("fc2", 512)
                      .loss()
                      .finish();
  const auto quotas = [&](int devices) {
    std::vector<std::string> labels;
    const StrategyInputs inputs = inputs_of(net, devices);
    for (const auto& variant : built_in_strategies().at("fc_parallel").variants(inputs)) {
      labels.push_back(variant.label);
    }
    return labels;
  };
  EXPECT_THAT(quotas(4), testing::ElementsAre("--quota 4", "--quota 2", "--quota 1"));
  EXPECT_EQ(quotas(16).size(), 5U);
  EXPECT_THAT(quotas(128),
              testing::ElementsAre("--quota 128", "--quota 64", "--quota 32", "--quota 16"));
}

}  // namespace
}  // namespace tandem::test
