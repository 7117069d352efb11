// Which activations a plan computes again for its backward pass, when, and into what memory.
#include "core/schedule/plan/recompute.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/schedule/plan/dependencies.h"
#include "core/schedule/plan/memory_plan.h"
#include "tests/schedule/plan_checks.h"
#include "tests/support/fake_net.h"
#include "tests/support/races.h"

namespace tandem::test {
namespace {

using testing::ElementsAre;

Plan plan_of(const Net& net, int devices = 1, const std::string& strategy = "layerwise") {
  Plan plan = build_plan_without_waits(strategy, inputs_of(net, devices));
  recompute_activations(plan, net, 0);
  derive_dependencies(plan);
  return plan;
}

std::vector<std::string> recomputed(const Plan& plan) {
  std::vector<std::string> result;
  for (const Task& task : plan.tasks) {
    if (repeats(task)) result.push_back(task.label);
  }
  return result;
}

std::string before(const Plan& plan, const std::string& label) {
  const int at = find_task(plan, label);
  return at < 1 ? "" : plan.tasks[size_t(at) - 1].label;
}

bool writes(const Plan& plan, const std::string& label, const std::string& buffer) {
  const int wanted = plan.find_buffer(buffer, 0);
  const auto& regions = task(plan, label).writes;
  return std::any_of(regions.begin(), regions.end(),
                     [&](const Region& region) { return region.buffer == wanted; });
}

TEST(Recompute, ComputesOutputsAgainDirectlyBeforeTheBackwardPassReadsThem) {
  const Plan plan = plan_of(scaled_net(8));
  // pool2 is made of what is freed itself.
  EXPECT_THAT(recomputed(plan), ElementsAre("recompute norm2 @0", "recompute relu2 @0",
                                            "recompute norm1 @0", "recompute relu1 @0"));
  EXPECT_EQ(before(plan, "backward_data relu2 @0"), "recompute relu2 @0");
  EXPECT_EQ(before(plan, "backward_weights conv2 @0"), "recompute relu1 @0");
  EXPECT_EQ(task(plan, "recompute norm1 @0").stage, task(plan, "backward_data conv2 @0").stage);
}

TEST(Recompute, ChangesNoPlanThatItWouldMakeHardlySmaller) {
  const Net net = scaled_net(8);
  Plan plan = build_plan_without_waits("layerwise", inputs_of(net, 1));
  recompute_activations(plan, net, 0.99);
  EXPECT_TRUE(recomputed(plan).empty());
  EXPECT_THAT(plan.recomputation, testing::HasSubstr("would save less than 99 % of the memory"));
}

TEST(Recompute, ChangesNoPlanUnlessItIsAskedFor) {
  EXPECT_TRUE(recomputed(build_plan("layerwise", inputs_of(scaled_net(8), 1))).empty());
}

TEST(Recompute, TakesTheMemoryOfTheOutputsOnlyWhileTheyAreUsed) {
  const Net net = scaled_net(8);
  const Plan plan = plan_of(net), plain = build_plan("layerwise", inputs_of(net, 1));
  const MemoryPlan memory = plan_memory(plan);
  const int64_t saved = plan_memory(plain).transient_bytes[0] - memory.transient_bytes[0];
  const int output = plan.find_buffer("norm1 output", 0);
  EXPECT_GT(saved, plan.buffers[size_t(output)].bytes / 4);
  EXPECT_TRUE(find_races(plan, &memory).empty());
}

TEST(Recompute, ChangesCopiesOfWhatALayerKeepsAndNotTheNets) {
  const Plan plan = plan_of(scaled_net(8), 2, "two_phase");
  EXPECT_TRUE(writes(plan, "forward norm1 @0", "weights"));
  EXPECT_FALSE(writes(plan, "recompute norm1 @0", "weights"));
  EXPECT_TRUE(writes(plan, "recompute norm1 @0", "state of forward norm1 @0"));
  EXPECT_TRUE(writes(plan, "copy state of norm1 @0", "state of forward norm1 @0"));
  EXPECT_EQ(before(plan, "forward norm1 @0"), "copy state of norm1 @0");
  EXPECT_EQ(find_task(plan, "copy state of relu1 @0"), -1);
}

// relu1 is made of norm1, which the backward pass reads, too: if both were freed, norm1 would be
// back long before it is needed.
TEST(Recompute, KeepsWhatIsMadeOfAFreedOutputThatTheBackwardPassReads) {
  Net net = FakeNet("chain", 8, {1, 3, 16, 16})
                .convolution("conv1", 16, 3, 1, 1)
                .batch_norm_scale("norm1")
                .relu("relu1")
                .convolution("conv2", 20, 3, 1, 1)
                .relu("relu2")
                .inner_product("fc1", 10)
                .loss()
                .finish();
  Layer& relu = net.layers[size_t(net.find_layer("relu1"))];
  relu.runs_in_place = false;
  net.tensors[size_t(relu.outputs[0])].alias_of = -1;
  const Layer& norm = net.layers[size_t(net.find_layer("norm1"))];
  tandem_layer_type reads_outputs = *norm.type;
  reads_outputs.traits |= TANDEM_BACKWARD_READS_OUTPUTS;
  net.layers[size_t(net.find_layer("norm1"))].type = &reads_outputs;
  EXPECT_THAT(recomputed(plan_of(net)), ElementsAre("recompute norm1 @0"));
  // Only the ReLU's forward pass reads norm1 now, so both are computed again for it.
  net.layers[size_t(net.find_layer("norm1"))].type = &fake::batch_norm_scale;
  EXPECT_THAT(recomputed(plan_of(net)), ElementsAre("recompute norm1 @0", "recompute relu1 @0"));
}

TEST(Recompute, LeavesOutWhatOtherStreamsRead) {
  const Net net = scaled_net(8);
  StrategyInputs inputs = inputs_of(net, 1);
  Plan plan = build_plan_without_waits("layerwise", inputs);
  Task look{"look", Stage::report, -1, {{0, StreamKind::communication}}};
  look.reads = {{plan.find_buffer("norm1 output", 0), 0, whole_buffer}};
  look.work = CopyWork{};
  plan.tasks.push_back(look);
  recompute_activations(plan, net, 0);
  EXPECT_THAT(recomputed(plan), ElementsAre("recompute norm2 @0", "recompute relu2 @0"));
}

}  // namespace
}  // namespace tandem::test
