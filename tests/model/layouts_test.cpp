// Layouts and reorders, with kernels that only report their options (tests/model/plugins), and with
// the real layers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/model/net_test.h"

namespace tandem {
namespace {

using namespace test;
using testing::ElementsAre;
using testing::HasSubstr;

NetOptions fake_options(int32_t phase = TANDEM_TRAIN) {
  NetOptions options = small_options(phase);
  options.device_kind = "fake";
  return options;
}

TEST(Layouts, AChainStaysBlockedUpToTheFirstFullyConnectedLayer) {
  const Net net = build(
      data_layer + convolution("conv1", "data", "conv1", 32) +
          layer("relu1", "ReLU", "conv1", "conv1") + layer("norm1", "LRN", "conv1", "norm1") +
          layer("pool1", "Pooling", "norm1", "pool1") + convolution("conv2", "pool1", "conv2", 16) +
          layer("relu2", "ReLU", "conv2", "conv2") + inner_product_layer("ip1", "conv2", "ip1") +
          layer("relu3", "ReLU", "ip1", "ip1") + inner_product_layer("ip", "ip1", "ip") +
          loss_layer,
      fake_options());
  EXPECT_THAT(reorders(net), ElementsAre("conv2_reorder_NCHW"));
  EXPECT_EQ(net.find_layer("conv2_reorder_NCHW") + 1, net.find_layer("ip1"));
  for (const std::string name : {"conv1", "relu1", "norm1", "pool1", "conv2", "relu2"}) {
    EXPECT_EQ(output_of(net, name).layout, TANDEM_NCHW16C) << name;
  }
  for (const std::string name : {"conv2_reorder_NCHW", "ip1", "relu3", "ip", "loss"}) {
    EXPECT_EQ(output_of(net, name).layout, TANDEM_NCHW) << name;
  }
  EXPECT_EQ(net.tensors[net.data].layout, TANDEM_NCHW);
  EXPECT_TRUE(layer_of(net, "relu1").runs_in_place);
  EXPECT_TRUE(layer_of(net, "conv2_reorder_NCHW").wants_backward_data);
  EXPECT_TRUE(output_of(net, "conv2_reorder_NCHW").has_gradient);
}

TEST(Layouts, BlockedOnesAreUsedOnlyWhereTheChannelsFit) {
  const Net net = build(data_layer + convolution("conv", "data", "conv", 20) +
                            inner_product_layer("ip", "conv", "ip") + loss_layer,
                        fake_options());
  EXPECT_EQ(output_of(net, "conv").layout, TANDEM_NHWC);
  EXPECT_THAT(reorders(net), ElementsAre("data_reorder_NHWC", "conv_reorder_NCHW"));
  EXPECT_FALSE(layer_of(net, "data_reorder_NHWC").has_backward());
}

TEST(Layouts, OneReorderServesAllReaders) {
  const Net net = build(data_layer + convolution("conv", "data", "conv", 32) +
                            inner_product_layer("a", "conv", "a") +
                            inner_product_layer("ip", "conv", "ip") + loss_layer,
                        fake_options(TANDEM_TEST));
  EXPECT_THAT(reorders(net), ElementsAre("conv_reorder_NCHW"));
  EXPECT_EQ(layer_of(net, "a").inputs, layer_of(net, "ip").inputs);
}

TEST(Layouts, ALossOverAnImageReadsItPlainAndItsLabelsAsTheyAre) {
  const Net net =
      build(data_layer + convolution("ip", "data", "ip", 32) + loss_layer, fake_options());
  EXPECT_THAT(reorders(net), ElementsAre("ip_reorder_NCHW"));
  EXPECT_EQ(layer_of(net, "loss").inputs[1], net.label);
  EXPECT_EQ(net.prediction, layer_of(net, "ip_reorder_NCHW").outputs[0]);
}

TEST(Layouts, AnInputThatIsOnlyReadForItsShapeMayHaveAnyLayout) {
  const Net net = build(data_layer + convolution("conv", "data", "conv", 32) +
                            layer("cut", "test.Like", "conv", "cut", "bottom: 'data'") +
                            convolution("conv2", "cut", "conv2", 32) +
                            inner_product_layer("ip", "conv2", "ip") + loss_layer,
                        fake_options());
  EXPECT_EQ(output_of(net, "cut").layout, TANDEM_NCHW16C);
  EXPECT_EQ(layer_of(net, "cut").inputs[1], net.data);
  EXPECT_THAT(reorders(net), ElementsAre("conv2_reorder_NCHW"));
}

TEST(Layouts, AKernelThatNamesNoneIsPlain) {
  const Net net = build(data_layer + convolution("conv", "data", "conv", 32) +
                            layer("own", "test.NamesNoLayout", "conv", "own") +
                            convolution("conv2", "own", "conv2", 32) +
                            inner_product_layer("ip", "conv2", "ip") + loss_layer,
                        fake_options());
  EXPECT_EQ(output_of(net, "own").layout, TANDEM_NCHW);
}

TEST(Layouts, ThatAKernelRefusesToTellWithoutAReasonAreAnErrorWithWhatWasAsked) {
  EXPECT_THAT(message_of([] {
                (void)build(data_layer + layer("own", "test.RefusesToName", "data", "own") +
                                inner_product_layer("ip", "own", "ip") + loss_layer,
                            fake_options());
              }),
              HasSubstr("layer 'own' (test.RefusesToName): its plugin refused its layouts without "
                        "a reason"));
}

TEST(Layouts, APredictionIsReadPlain) {
  const Net net = build(
      "layer { name: 'd' type: 'Input' top: 'data' }" + convolution("conv", "data", "conv", 32),
      fake_options(TANDEM_TEST));
  EXPECT_THAT(layer_names(net), ElementsAre("conv", "conv_reorder_NCHW"));
  EXPECT_EQ(net.tensors[net.prediction].layout, TANDEM_NCHW);
  EXPECT_EQ(net.tensors[net.prediction].producer, 1);
}

TEST(Layouts, BranchesOfOneTensorKeepItsLayout) {
  const Net net = build(data_layer + convolution("a", "data", "a", 16) +
                            convolution("b", "a", "b", 16) + convolution("c", "a", "c", 16) +
                            layer("sum", "test.Add", "b", "sum", "bottom: 'c'") +
                            inner_product_layer("ip", "sum", "ip") + loss_layer,
                        fake_options());
  EXPECT_THAT(reorders(net), ElementsAre("sum_reorder_NCHW"));
  EXPECT_EQ(output_of(net, "a_split").layout, TANDEM_NCHW16C);
}

TEST(Layouts, AreChosenForTheWholeNet) {
  NetOptions options = fake_options(TANDEM_TEST);
  options.data = {1, 16, 8, 8};
  const Net net = build(data_layer + layer("relu1", "ReLU", "data", "r") +
                            layer("relu2", "ReLU", "r", "a") + convolution("conv1", "a", "c1", 16) +
                            layer("relu3", "ReLU", "r", "b") + convolution("conv2", "b", "c2", 16) +
                            layer("sum", "test.Add", "c1", "sum", "bottom: 'c2'") +
                            inner_product_layer("ip", "sum", "ip") + loss_layer,
                        options);
  EXPECT_EQ(reorders(net).size(), 2u) << "layer by layer, each branch would have one of its own";
}

TEST(Layouts, AKernelWithoutAPossibleLayoutIsAnError) {
  EXPECT_EQ(message_of([] {
              (void)build(data_layer + layer("x", "test.NeedsBlocked", "data", "x") +
                              inner_product_layer("ip", "x", "ip") + loss_layer,
                          fake_options());
            }),
            "layer 'x' (test.NeedsBlocked): its kernel on device kind 'fake' offers no layout that "
            "its tensors can have (net.prototxt:2)");
}

TEST(Layouts, ALayerWithoutAKernelIsReportedWithItsLocation) {
  EXPECT_EQ(message_of([] {
              (void)build(data_layer + layer("x", "test.NoKernel", "data", "x") +
                              inner_product_layer("ip", "x", "ip") + loss_layer,
                          fake_options());
            }),
            "layer 'x' (test.NoKernel): layer type 'test.NoKernel' has no kernel on device kind "
            "'fake', it has no kernel at all (net.prototxt:2)");
}

TEST(Layouts, NamesOfInsertedLayersAreUnique) {
  const Net net = build(data_layer + convolution("a", "data", "a", 32) +
                            inner_product_layer("ip1", "a", "ip1") + layer("r", "ReLU", "a", "a") +
                            inner_product_layer("ip2", "a", "ip2") +
                            layer("sum", "test.Add", "ip1", "ip", "bottom: 'ip2'") + loss_layer,
                        fake_options(TANDEM_TEST));
  EXPECT_THAT(reorders(net), testing::UnorderedElementsAre("a_reorder_NCHW", "a_reorder_NCHW_2"));
}

}  // namespace
}  // namespace tandem
