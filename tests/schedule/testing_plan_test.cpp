// The plans that do not overlap: `sequential`, and testing.
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

TEST(Sequential, SendsAndBroadcastsEverythingInOneCopyADevice) {
  const Net net = small_net(9);
  const Plan plan = build_plan("sequential", inputs_of(net, 3));
  for (const char* label : {"send gradients @2->@0", "broadcast weights @0->@2"}) {
    const auto& copy = std::get<CopyWork>(task(plan, label).work);
    ASSERT_EQ(copy.segments.size(), 1U);
    EXPECT_EQ(plan.bytes(copy.segments[0].source), buffers::weight_bytes(net));
  }
  // Whatever is on the communication streams follows the whole backward pass.
  EXPECT_THAT(labels(plan, {0, StreamKind::communication}),
              testing::ElementsAre("broadcast weights @0->@1", "broadcast weights @0->@2",
                                   "send metrics @1->@0", "send metrics @2->@0", "add metrics @0",
                                   "check loss @0", "report @0", "send gradients @1->@0",
                                   "send gradients @2->@0", "add gradients @0", "update @0"));
  EXPECT_LT(find_task(plan, "backward_weights conv1 @2"), find_task(plan, "send gradients @1->@0"));
}

TEST(TestingPlan, BringsTheClassScoresOfTheWholeBatchTogether) {
  const Net net = small_net(7, TANDEM_TEST);
  const Plan plan = build_testing_plan(inputs_of(net, 3));
  const int target = plan.find_buffer(buffers::predictions, TANDEM_HOST);
  ASSERT_GE(target, 0);
  EXPECT_EQ(plan.buffers[size_t(target)].bytes, 7 * 10 * 4);
  EXPECT_EQ(plan.buffers[size_t(target)].slots, 2);
  const auto& copy = std::get<CopyWork>(task(plan, "copy predictions @2").work);
  EXPECT_EQ(copy.segments[0].target.offset, 5 * 10 * 4);
  EXPECT_EQ(plan.bytes(copy.segments[0].source), 2 * 10 * 4);
}

TEST(TestingPlan, GivesEveryDeviceTheMastersWeightsBeforeTheForward) {
  const Net net = small_net(7, TANDEM_TEST);
  const Plan plan = build_testing_plan(inputs_of(net, 3));
  for (int device = 1; device < 3; ++device) {
    const std::string to = fmt::format("@{}", device);
    const int broadcast = find_task(plan, "broadcast weights @0->" + to);
    ASSERT_GE(broadcast, 0);
    EXPECT_EQ(plan.tasks[size_t(broadcast)].when, When::micro_batch_0)
        << "an evaluation changes no weights";
    const auto& copy = std::get<CopyWork>(plan.tasks[size_t(broadcast)].work);
    EXPECT_EQ(plan.bytes(copy.segments[0].target), buffers::weight_bytes(net));
    EXPECT_THAT(task(plan, "forward conv1 " + to).after,
                testing::Contains(Dependency{broadcast, 0}));
  }
}

TEST(TestingPlan, HasNoBackwardAndNoUpdate) {
  const Net net = small_net(8);  // also of a training net, to diagnose one
  const Plan plan = build_testing_plan(inputs_of(net, 2));
  for (const Task& task : plan.tasks) {
    EXPECT_TRUE(task.stage == Stage::input || task.stage == stages::broadcast ||
                task.stage == Stage::forward || task.stage == Stage::report)
        << task.label;
  }
  EXPECT_EQ(plan.find_buffer(buffers::gradients, 0), -1);
  EXPECT_EQ(plan.find_buffer(buffers::found_inf, 0), -1);
}

TEST(TestingPlan, SharesTheResultsBufferWithTrainingPlans) {
  const Net training = small_net(8), testing = small_net(8, TANDEM_TEST);
  ASSERT_NE(training.scalars.size(), testing.scalars.size());
  const Plan train = build_plan("two_phase", inputs_of(training, 2));
  const Plan test = build_testing_plan(inputs_of(testing, 2));
  for (const Buffer& buffer : test.buffers) {
    const int same = train.find_buffer(buffer.name, buffer.device);
    if (buffer.kind != BufferKind::persistent || same < 0) continue;
    EXPECT_EQ(train.buffers[size_t(same)].bytes, buffer.bytes) << buffer.name;
    EXPECT_EQ(train.buffers[size_t(same)].initial, buffer.initial) << buffer.name;
  }
}

}  // namespace
}  // namespace tandem::test
