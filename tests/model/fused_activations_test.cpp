// Which activations are fused into the kernel of the upstream layer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/model/net/net_report.h"
#include "tests/model/net_test.h"

namespace tandem {
namespace {

using namespace test;
using testing::HasSubstr;

NetOptions made_for_fake(int32_t phase = TANDEM_TRAIN) {
  NetOptions options = small_options(phase);
  options.device_kind = "fake";
  return options;
}

std::string rectified(const std::string& between, const std::string& relu = "") {
  return data_layer + convolution("a", "data", "a", 4) + between +
         layer("relu", "ReLU", "a", "a", relu) + inner_product_layer("ip", "a", "ip") + loss_layer;
}

void expect_separate(const Net& net) {
  for (const Layer& each : net.layers) {
    EXPECT_EQ(each.fused_into, -1) << each.name;
    EXPECT_EQ(each.activation, TANDEM_ACTIVATION_NONE) << each.name;
  }
}

TEST(Activations, AreFusedIntoAKernelThatSupportsItInTrainingAndTesting) {
  for (const int32_t phase : {TANDEM_TRAIN, TANDEM_TEST}) {
    const Net net = build(rectified(""), made_for_fake(phase));
    EXPECT_EQ(layer_of(net, "relu").fused_into, net.find_layer("a"));
    EXPECT_EQ(layer_of(net, "a").activation, TANDEM_ACTIVATION_RELU);
    EXPECT_EQ(net.fused_layer(net.find_layer("a")), net.find_layer("relu"));
    EXPECT_EQ(layer_of(net, "ip").activation, TANDEM_ACTIVATION_NONE);
    EXPECT_EQ(net.fused_layer(net.find_layer("ip")), -1);
    EXPECT_EQ(layer_of(net, "relu").wants_backward_data, phase == TANDEM_TRAIN);
  }
}

TEST(Activations, AreNotFusedInANetWithoutADeviceKind) {
  expect_separate(build(rectified("")));
}

TEST(Activations, AreNotFusedIntoAKernelThatDoesNotSupportThem) {
  expect_separate(build(data_layer + inner_product_layer("ip", "data", "ip") +
                            layer("relu", "ReLU", "ip", "ip") + loss_layer,
                        made_for_fake()));
}

TEST(Activations, AreNotFusedIfTheTypeDoesMore) {
  expect_separate(build(rectified("", "relu_param { negative_slope: 0.1 }"), made_for_fake()));
}

TEST(Activations, AreNotFusedIfAnotherLayerReadsTheirInput) {
  const Net net =
      build(data_layer + convolution("a", "data", "a", 4) + layer("relu", "ReLU", "a", "b") +
                layer("index", "test.Index", "a", "i") + inner_product_layer("ip", "b", "ip") +
                loss_layer,
            made_for_fake());
  expect_separate(net);
}

TEST(Activations, AreNotFusedIfTheUpstreamLayerReadsItsOutputInBackward) {
  // The second ReLU's input is the first's output, which the first reads.
  const Net net = build(rectified(layer("first", "ReLU", "a", "a")), made_for_fake());
  EXPECT_EQ(layer_of(net, "first").fused_into, net.find_layer("a"));
  EXPECT_EQ(layer_of(net, "relu").fused_into, -1);
}

TEST(Activations, AreFusedOnlyIntoTheLayerThatWritesTheirInput) {
  const Net net = build(rectified(layer("drop", "Dropout", "a", "a")), made_for_fake());
  EXPECT_TRUE(layer_of(net, "relu").runs_in_place);
  expect_separate(net);
}

TEST(Activations, AreFusedIntoASumOfSeveralTensors) {
  const Net net = build(
      data_layer + convolution("a", "data", "a", 4) + convolution("b", "data", "b", 4) +
          layer("sum", "test.Add", "a", "sum", "bottom: 'b'") +
          layer("relu", "ReLU", "sum", "sum") + inner_product_layer("ip", "sum", "ip") + loss_layer,
      made_for_fake());
  EXPECT_EQ(layer_of(net, "relu").fused_into, net.find_layer("sum"));
  EXPECT_EQ(layer_of(net, "a").activation, TANDEM_ACTIVATION_NONE);
}

TEST(Activations, AreNotFusedIfAMetricReadsTheirInput) {
  const Net net =
      build(data_layer + convolution("a", "data", "a", 4) +
                layer("top1", "Accuracy", "a", "top1", "bottom: 'label'") +
                layer("relu", "ReLU", "a", "a") + inner_product_layer("ip", "a", "ip") + loss_layer,
            made_for_fake(TANDEM_TEST));
  expect_separate(net);
}

TEST(Activations, CanBeSeparatedAgain) {
  Net net = build(rectified(""), made_for_fake());
  net.separate_fusions();
  expect_separate(net);
}

TEST(Activations, AreShownWithTheLayerTheyAreFusedInto) {
  const Net net = build(rectified(""), made_for_fake());
  EXPECT_EQ(fusion_text(net, layer_of(net, "relu").fused_into), "fused into a");
  EXPECT_EQ(fusion_text(net, layer_of(net, "a").fused_into), "");
  EXPECT_THAT(to_dot(net), HasSubstr("relu\\nReLU\\nfused into a"));
}

}  // namespace
}  // namespace tandem
