// What single strategies promise of their plans.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "core/data/loader/loader.h"
#include "core/schedule/plan/buffers.h"
#include "core/schedule/plan/memory_plan.h"
#include "core/schedule/strategies/common/stages.h"
#include "tests/schedule/plan_checks.h"

namespace tandem::test {
namespace {

using testing::HasSubstr;

TEST(Strategies, CopyUnevenSharesOfTheBatchToTheRightPlaces) {
  const Net net = small_net(7);
  const Plan plan = build_plan("sequential", inputs_of(net, 3));
  const BatchLayout global = make_batch_layout(7, {1, 3, 16, 16});
  const BatchLayout local = make_batch_layout(2, {1, 3, 16, 16});
  const auto& copy = std::get<CopyWork>(task(plan, "copy input @2").work);
  ASSERT_EQ(copy.segments.size(), 3U);
  EXPECT_EQ(plan.bytes(copy.segments[0].source), static_cast<int64_t>(sizeof(tandem_step)));
  EXPECT_EQ(copy.segments[1].source.offset, global.label_offset + 5 * 4);
  EXPECT_EQ(copy.segments[1].target.offset, local.label_offset);
  EXPECT_EQ(copy.segments[1].target.bytes, 2 * 4);
  EXPECT_EQ(copy.segments[2].source.offset, global.data_offset + 5 * 3 * 16 * 16 * 4);
  EXPECT_EQ(copy.segments[2].target.offset, local.data_offset);
  EXPECT_EQ(copy.segments[2].target.bytes, 2 * 3 * 16 * 16 * 4);
}

TEST(Strategies, CheckTheLossBeforeAnyUpdateOfTheStep) {
  const Net net = small_net(8);
  for (const char* strategy : {"sequential", "two_phase"}) {
    const Plan plan = build_plan(strategy, inputs_of(net, 2));
    const int check = find_task(plan, "check loss @0");
    ASSERT_GE(check, 0);
    for (size_t i = 0; i < plan.tasks.size(); ++i) {
      if (!std::holds_alternative<UpdateWork>(plan.tasks[i].work)) continue;
      EXPECT_LT(check, static_cast<int>(i));
      EXPECT_EQ(plan.tasks[i].streams.front(), plan.tasks[size_t(check)].streams.front());
    }
  }
}

TEST(Strategies, LetClippedUpdatesWaitForTheNormsOfAllGradients) {
  const Net net = small_net(8);
  StrategyInputs inputs = inputs_of(net, 2);
  inputs.options["split"] = "fc1";
  inputs.needs_norms = inputs.clips_gradients = true;
  const Plan plan = build_plan("two_phase", inputs);
  const int norms = find_task(plan, "norms conv @0"), update = find_task(plan, "update fc @0");
  ASSERT_GE(norms, 0);
  EXPECT_LT(norms, update);
  EXPECT_EQ(plan.tasks[size_t(norms)].streams, plan.tasks[size_t(update)].streams);
  inputs.clips_gradients = false;  // LARS: the norms of its own arrays are enough
  const Plan local = build_plan("two_phase", inputs);
  EXPECT_LT(find_task(local, "update fc @0"), find_task(local, "norms conv @0"));
}

TEST(Strategies, ComputeInEveryBatchOfAnUpdateAndSendInTheLast) {
  const Net net = small_net(8);
  StrategyInputs inputs = inputs_of(net, 2);
  inputs.micro_batches_per_step = 3;
  for (const bool hidden : {false, true}) {
    inputs.options["hidden_broadcast"] = hidden;
    const Plan plan = build_plan("two_phase", inputs);
    for (const Task& task : plan.tasks) {
      const bool once = task.stage == stages::send_fc_gradients ||
                        task.stage == stages::update_fc ||
                        task.stage == stages::send_conv_gradients ||
                        task.stage == stages::update_conv || task.stage == stages::broadcast;
      const bool first = task.stage == stages::broadcast && !hidden;
      EXPECT_EQ(works_in(plan, task, 3), !once || first) << task.label;
      EXPECT_EQ(works_in(plan, task, 4), !once) << task.label;
      EXPECT_EQ(works_in(plan, task, 5), !first) << task.label;
    }
  }
}

TEST(Strategies, CheckOnlyScalarsThatArePartOfTheLoss) {
  const Net net = FakeNet("net", 4, {1, 1, 4, 4})
                      .inner_product("fc1", 16)
                      .inner_product("fc2", 16)
                      .accuracy()
                      .loss("shown", 0)
                      .loss("loss", 0.5)
                      .finish();
  const Plan plan = build_plan("two_phase", inputs_of(net, 2));
  EXPECT_GE(find_task(plan, "check loss @0"), 0);
  EXPECT_EQ(find_task(plan, "check shown @0"), -1);
  EXPECT_EQ(find_task(plan, "check accuracy @0"), -1);
  const int constants = plan.find_buffer(buffers::constants, 1);
  ASSERT_GE(constants, 0);
  const std::vector<float>& values = plan.buffers[size_t(constants)].initial;
  ASSERT_EQ(values.size(), 48U);
  EXPECT_EQ(values[0], 0);
  EXPECT_EQ(values[32], 0.5F);
}

// So that float16 holds small gradients; updates divide by it.
TEST(Strategies, BeginTheGradientsOfFloat16WithLossesTimes1024) {
  const auto begin = [](int32_t precision) {
    Net net = small_net(8);
    net.layers[0].dtype = precision;
    const Plan plan = build_plan("layerwise", inputs_of(net, 2));
    const int constants = plan.find_buffer(buffers::constants, 1);
    float sum = 0;
    for (const float value : plan.buffers[size_t(constants)].initial) sum += value;
    return sum;
  };
  EXPECT_GT(begin(TANDEM_FLOAT32), 0);
  EXPECT_EQ(begin(TANDEM_BFLOAT16), begin(TANDEM_FLOAT32));
  EXPECT_EQ(begin(TANDEM_FLOAT16), 1024 * begin(TANDEM_FLOAT32));
}

TEST(Strategies, DivideLossesAndMetricsByTheSamplesOfTheStep) {
  const Net training = small_net(8), testing = small_net(8, TANDEM_TEST);
  for (const Plan& plan : {build_plan("sequential", inputs_of(training, 2)),
                           build_testing_plan(inputs_of(testing, 2))}) {
    const PlanBinding& loss = plan.bindings.back();
    EXPECT_EQ(plan.buffers[size_t(loss.normaliser.buffer)].name, buffers::input);
    EXPECT_EQ(loss.normaliser.offset, static_cast<int64_t>(offsetof(tandem_step, samples)));
  }
}

TEST(Strategies, SendStatisticsToTheFirstDeviceMergeThemThereAndSendThemBackBeforeThePass) {
  const Net net = normalised_net(8);
  const Plan plan = build_plan("sequential", inputs_of(net, 3));
  int before = -1;
  for (const char* label :
       {"forward_statistics norm1 @2", "send forward_statistics norm1 @2->@0",
        "merge forward_statistics norm1 @0", "broadcast forward_statistics norm1 @0->@2",
        "forward norm1 @2", "backward_statistics norm1 @2", "send backward_statistics norm1 @2->@0",
        "merge backward_statistics norm1 @0", "broadcast backward_statistics norm1 @0->@2",
        "backward_data norm1 @2"}) {
    EXPECT_LT(before, find_task(plan, label)) << label;
    before = find_task(plan, label);
  }
  const auto& merge = std::get<MergeWork>(task(plan, "merge forward_statistics norm1 @0").work);
  ASSERT_EQ(merge.sources.size(), 2U);
  EXPECT_EQ(plan.buffers[size_t(merge.sources[0].buffer)].name,
            "received norm1 forward_statistics @1");
  EXPECT_EQ(plan.bytes(merge.target), 3 * 16 * 4);
}

TEST(Strategies, CopyNoStatisticsOnOneDevice) {
  const Net net = normalised_net(8);
  const Plan plan = build_plan("sequential", inputs_of(net, 1));
  EXPECT_GE(find_task(plan, "forward_statistics norm1 @0"), 0);
  for (const Task& task : plan.tasks) {
    EXPECT_FALSE(std::holds_alternative<MergeWork>(task.work)) << task.label;
    const auto* copy = std::get_if<CopyWork>(&task.work);
    EXPECT_FALSE(copy != nullptr && task.streams.size() > 1) << task.label;
  }
}

TEST(Strategies, LetTensorsMadeInPlaceShareMemoryAndGradients) {
  const Net net = small_net(8);
  const Plan plan = build_plan("two_phase", inputs_of(net, 1));
  const auto& relu = std::get<LayerWork>(task(plan, "forward relu1 @0").work);
  const PlanBinding& use = plan.bindings[size_t(relu.binding)];
  EXPECT_EQ(use.inputs[0].buffer, use.outputs[0].buffer);
  EXPECT_EQ(use.input_gradients[0].buffer, use.output_gradients[0].buffer);
  EXPECT_EQ(plan.buffers[size_t(use.inputs[0].buffer)].name, "conv1 output");
}

TEST(Strategies, GiveTheFirstLayerNoDataGradient) {
  const Net net = small_net(8);
  const Plan plan = build_plan("two_phase", inputs_of(net, 1));
  EXPECT_EQ(find_task(plan, "backward_data conv1 @0"), -1);
  EXPECT_GE(find_task(plan, "backward_weights conv1 @0"), 0);
  EXPECT_LT(find_task(plan, "backward_weights conv2 @0"),
            find_task(plan, "backward_data conv2 @0"));
}

TEST(Strategies, AccumulateTheGradientOfWeightsThatLayersShare) {
  const Net net = FakeNet("net", 4, {1, 1, 4, 4})
                      .inner_product("fc1", 16)
                      .inner_product("fc2", 16)
                      .inner_product_sharing("fc3", "fc2")
                      .loss()
                      .finish();
  const Plan plan = build_plan("two_phase", inputs_of(net, 2));
  const auto accumulates = [&](const char* label) {
    return std::get<LayerWork>(task(plan, label).work).accumulate;
  };
  EXPECT_FALSE(accumulates("backward_weights fc3 @1"));
  EXPECT_TRUE(accumulates("backward_weights fc2 @1"));
  EXPECT_FALSE(accumulates("backward_weights fc1 @1"));
}

TEST(Strategies, NeedARowForEveryDevice) {
  const Net net = small_net(2);
  EXPECT_THAT(message_of([&] { (void)build_plan("two_phase", inputs_of(net, 4)); }),
              HasSubstr("batch 2 is smaller than the 4 devices"));
  EXPECT_THAT(message_of([&] { (void)build_testing_plan(inputs_of(net, 3)); }),
              HasSubstr("batch 2 is smaller than the 3 devices"));
}

TEST(Strategies, AreSuggestedForANameThatIsNearly) {
  const Net net = small_net(4);
  const std::string message = message_of([&] { (void)build_plan("two_fase", inputs_of(net, 2)); });
  EXPECT_THAT(message, HasSubstr("unknown strategy 'two_fase' (did you mean 'two_phase'?)"));
  EXPECT_THAT(message, HasSubstr("sequential, two_phase"));
}

}  // namespace
}  // namespace tandem::test
