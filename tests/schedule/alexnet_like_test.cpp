// The AlexNet-like test of docs/design/strategies.md §1, with numbers small enough to add up by
// hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/schedule/strategies/data_parallel/alexnet_like.h"
#include "tests/schedule/plan_checks.h"

namespace tandem::test {
namespace {

using testing::HasSubstr;

// 10 seconds of backward time in all; parameters: conv1 160, conv2 2320, fc1 819216, fc2 16400.
Net four_layers() {
  return FakeNet("net", 8, {1, 1, 16, 16})
      .convolution("conv1", 16, 3, 1, 1)
      .convolution("conv2", 16, 3, 1, 1)
      .inner_product("fc1", 200)
      .inner_product("fc2", 80)
      .loss()
      .finish();
}

CostTable backward_times(const Net& net, double conv1, double conv2, double fc1, double fc2) {
  CostTable costs;
  for (const Layer& layer : net.layers) {
    costs.set(layer.name + " backward_data", {0, 0, 0});
    costs.set(layer.name + " backward_weights", {0, 0, 0});
  }
  costs.set("conv1 backward_weights", {conv1, 0, 0});
  costs.set("conv2 backward_data", {conv2 / 2, 0, 0});
  costs.set("conv2 backward_weights", {conv2 / 2, 0, 0});
  costs.set("fc1 backward_weights", {fc1, 0, 0});
  costs.set("fc2 backward_weights", {fc2, 0, 0});
  return costs;
}

TEST(AlexNetLike, IsANetWhoseTimeIsInFrontAndWhoseParametersAreBehind) {
  const Net net = four_layers();
  const AlexNetTest test = test_alexnet_like(net, backward_times(net, 4, 5.5, 0.3, 0.2), {});
  EXPECT_TRUE(test.alexnet_like);
  EXPECT_EQ(test.p, "conv2");
  EXPECT_NEAR(test.time_share, 0.6, 1e-12);
  EXPECT_NEAR(test.weight_share, 160 / (160 + 2320 + 819400 + 16080.0), 1e-12);
  EXPECT_THAT(test.explanation,
              HasSubstr("AlexNet-like by measured times: from the loss on, backward time passes "
                        "0.1 of the total at p = 'conv2' (t/T = 0.600)"));
}

// The first p layers from the loss on are the FC part, so the parameters of p are not v's.
TEST(AlexNetLike, DoesNotCountTheLayerPToTheConvPart) {
  const Net net = four_layers();
  const AlexNetTest test = test_alexnet_like(net, backward_times(net, 4, 3, 2.5, 0.5), {});
  EXPECT_TRUE(test.alexnet_like);
  EXPECT_EQ(test.p, "fc1");
  EXPECT_NEAR(test.weight_share, (160 + 2320) / (160 + 2320 + 819400 + 16080.0), 1e-12);
}

TEST(AlexNetLike, NamesTheSourceOfItsTimes) {
  const Net net = four_layers();
  EXPECT_THAT(test_alexnet_like(net, {}, {}).explanation, HasSubstr("by estimated times"));
}

TEST(AlexNetLike, IsNoNetWhoseParametersAreInFront) {
  const Net net = four_layers();
  const AlexNetTest test = test_alexnet_like(net, backward_times(net, 4, 3, 1, 2), {});
  EXPECT_FALSE(test.alexnet_like);
  EXPECT_EQ(test.p, "fc2");
  EXPECT_THAT(test.explanation, HasSubstr("not AlexNet-like"));
  EXPECT_THAT(test.explanation, HasSubstr("v/V = 0.981 of the parameters, which is not below 0.1"));
}

TEST(AlexNetLike, MustPassTheThresholdNotMeetIt) {
  const Net net = four_layers();
  EXPECT_EQ(test_alexnet_like(net, backward_times(net, 4, 4, 1, 1), {}).p, "fc1");
  AlexNetThresholds thresholds;
  thresholds.time_threshold = 0.25;
  EXPECT_EQ(test_alexnet_like(net, backward_times(net, 4, 4, 1, 1), thresholds).p, "conv2");
}

TEST(AlexNetLike, DependsOnTheSecondThreshold) {
  const Net net = four_layers();
  AlexNetThresholds thresholds;
  thresholds.weight_threshold = 0.0001;
  EXPECT_FALSE(
      test_alexnet_like(net, backward_times(net, 4, 5.5, 0.3, 0.2), thresholds).alexnet_like);
}

TEST(AlexNetLike, SaysWhenThereIsNothingToCompare) {
  const Net net = four_layers();
  const AlexNetTest test = test_alexnet_like(net, backward_times(net, 0, 0, 0, 0), {});
  EXPECT_FALSE(test.alexnet_like);
  EXPECT_THAT(test.explanation, HasSubstr("no backward time"));
}

}  // namespace
}  // namespace tandem::test
