// Gradients, splits and running in place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/model/net_test.h"

namespace tandem {
namespace {

using namespace test;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(Gradients, StopWhereNothingUpstreamIsTrained) {
  const Net net = build(data_layer + layer("norm", "LRN", "data", "norm") +
                        convolution("a", "norm", "a", 4) + layer("pool", "Pooling", "a", "pool") +
                        inner_product_layer("ip", "pool", "ip") + loss_layer);
  EXPECT_FALSE(layer_of(net, "norm").has_backward());
  EXPECT_TRUE(layer_of(net, "a").wants_backward_weights);
  EXPECT_FALSE(layer_of(net, "a").wants_backward_data);
  EXPECT_TRUE(layer_of(net, "pool").wants_backward_data);
  EXPECT_TRUE(layer_of(net, "ip").wants_backward_data);
  EXPECT_FALSE(net.tensors[net.data].has_gradient);
  EXPECT_FALSE(output_of(net, "norm").has_gradient);
  EXPECT_TRUE(output_of(net, "a").has_gradient);
  EXPECT_FALSE(net.tensors[net.label].has_gradient);
  EXPECT_FALSE(output_of(net, "loss").has_gradient);
}

TEST(Gradients, AreNotComputedForFrozenWeights) {
  const std::string frozen = "param { lr_mult: 0 } param { lr_mult: 0 }";
  const Net net = build(data_layer + convolution("a", "data", "a", 4, frozen) +
                        inner_product_layer("ip", "a", "ip") + loss_layer);
  EXPECT_FALSE(layer_of(net, "a").has_backward());
  EXPECT_FALSE(layer_of(net, "ip").wants_backward_data);
  EXPECT_FALSE(net.weights[0].trained());
}

TEST(Gradients, PassThroughAFrozenLayerToATrainedOne) {
  const std::string frozen = "param { lr_mult: 0 } param { lr_mult: 0 }";
  const Net net = build(data_layer + convolution("a", "data", "a", 4) +
                        inner_product_layer("ip", "a", "ip", frozen) + loss_layer);
  EXPECT_TRUE(layer_of(net, "ip").wants_backward_data);
  EXPECT_FALSE(layer_of(net, "ip").wants_backward_weights);
}

TEST(Gradients, ABranchWithoutALossIsNotTrained) {
  const Net net =
      build(data_layer + inner_product_layer("side", "data", "side") +
            inner_product_layer("ip", "data", "ip") + loss_layer +
            layer("shown", "SoftmaxWithLoss", "side", "shown", "bottom: 'label' loss_weight: 0"));
  EXPECT_FALSE(layer_of(net, "side").has_backward());
  EXPECT_FALSE(layer_of(net, "shown").has_backward());
  EXPECT_FALSE(net.weights[0].trained()) << "or it would be updated with no gradient";
  EXPECT_TRUE(net.weights[2].trained());
}

TEST(Gradients, DoNotExistInTesting) {
  const Net net = build(data_layer + convolution("a", "data", "a", 4) +
                            inner_product_layer("ip", "a", "ip") + loss_layer,
                        TANDEM_TEST);
  for (const Layer& each : net.layers) EXPECT_FALSE(each.has_backward()) << each.name;
  for (const Tensor& tensor : net.tensors) EXPECT_FALSE(tensor.has_gradient) << tensor.name;
}

TEST(Gradients, PropagateDownCutsABranch) {
  const Net net = build(data_layer + convolution("a", "data", "a", 4) +
                        inner_product_layer("ip", "a", "ip", "propagate_down: false") + loss_layer);
  EXPECT_FALSE(layer_of(net, "a").has_backward());
  EXPECT_FALSE(output_of(net, "a").has_gradient);
}

TEST(Gradients, FlowOnlyWhereTheTypeAllowsIt) {
  const Net net =
      build(data_layer + convolution("a", "data", "a", 4) + convolution("b", "data", "b", 4) +
            layer("cut", "test.Like", "a", "cut", "bottom: 'b'") +
            layer("index", "test.Index", "b", "index") +
            layer("both", "test.Add", "cut", "both", "bottom: 'index'") +
            inner_product_layer("ip", "both", "ip") + loss_layer);
  EXPECT_TRUE(layer_of(net, "a").wants_backward_weights);
  EXPECT_FALSE(layer_of(net, "b").has_backward());
  EXPECT_FALSE(layer_of(net, "index").has_backward());
}

TEST(Gradients, OfOtherLayersMayFlowWhereOnlyTheShapeIsRead) {
  const Net net =
      build(data_layer + convolution("a", "data", "a", 4) + convolution("b", "data", "b", 4) +
            layer("cut", "test.Like", "a", "cut", "bottom: 'b'") +
            layer("both", "test.Add", "cut", "both", "bottom: 'b'") +
            inner_product_layer("ip", "both", "ip") + loss_layer);
  EXPECT_TRUE(output_of(net, "b").has_gradient);
  EXPECT_TRUE(layer_of(net, "cut").wants_backward_data);
}

const std::string branches = data_layer + convolution("a", "data", "a", 4) +
                             inner_product_layer("aux", "a", "aux") +
                             layer("auxloss", "SoftmaxWithLoss", "aux", "l", "bottom: 'label'") +
                             inner_product_layer("ip", "a", "ip") + loss_layer +
                             layer("top1", "Accuracy", "ip", "top1", "bottom: 'label'");

TEST(Splits, ATensorWithTwoGradientsGetsOne) {
  const Net net = build(branches);
  EXPECT_THAT(layer_names(net),
              ElementsAre("a", "a_split", "aux", "auxloss", "ip", "loss", "top1"));
  const Layer& split = layer_of(net, "a_split");
  EXPECT_EQ(split.inputs[0], layer_of(net, "a").outputs[0]);
  EXPECT_THAT(split.outputs,
              ElementsAre(layer_of(net, "aux").inputs[0], layer_of(net, "ip").inputs[0]));
  EXPECT_TRUE(split.wants_backward_data);
  EXPECT_TRUE(output_of(net, "a").has_gradient);
  EXPECT_TRUE(net.tensors[split.outputs[1]].has_gradient);
  EXPECT_EQ(net.tensors[split.outputs[1]].name, "a_split_1");
  EXPECT_THAT(output_of(net, "a").consumers, ElementsAre(net.find_layer("a_split")));
}

TEST(Splits, ALayerWithoutAGradientReadsTheOriginal) {
  const Net net = build(branches);
  EXPECT_EQ(net.find_layer("ip_split"), -1);
  EXPECT_EQ(layer_of(net, "top1").inputs[0], layer_of(net, "ip").outputs[0]);
  EXPECT_EQ(build(branches, TANDEM_TEST).find_layer("a_split"), -1);
}

TEST(Splits, ATensorUsedTwiceByOneLayerGetsOneToo) {
  const Net net = build(data_layer + convolution("a", "data", "a", 4) +
                        layer("sum", "test.Add", "a", "sum", "bottom: 'a'") +
                        inner_product_layer("ip", "sum", "ip") + loss_layer);
  EXPECT_EQ(layer_of(net, "a_split").outputs, layer_of(net, "sum").inputs);
}

TEST(Splits, CopyNothing) {
  const Net net = build(branches);
  const int split = net.find_layer("a_split");
  EXPECT_TRUE(net.makes_views(split));
  const Layer& layer = net.layers[static_cast<size_t>(split)];
  for (const int output : layer.outputs) {
    EXPECT_EQ(net.values_of(output), net.values_of(layer.inputs[0]));
    EXPECT_EQ(net.gradient_of(output), output);
  }
}

TEST(Splits, ShapesForSomeRowsIncludeInsertedLayers) {
  const Net net = build(branches);
  EXPECT_EQ(to_string(net.shapes(1)[layer_of(net, "a_split").outputs[1]]), "1x4x8x8");
}

bool in_place(const std::string& layers, const std::string& name, int32_t phase = TANDEM_TRAIN) {
  const Net net = build(data_layer + convolution("a", "data", "a", 4) + layers +
                            inner_product_layer("ip", "last", "ip") + loss_layer,
                        phase);
  const Layer& layer = layer_of(net, name);
  const Tensor& output = net.tensors[layer.outputs[0]];
  EXPECT_EQ(layer.runs_in_place, output.alias_of >= 0);
  return layer.runs_in_place;
}

TEST(InPlace, AnElementWiseLayerRunsInPlaceWhateverItsTopIsCalled) {
  EXPECT_TRUE(in_place(layer("r", "ReLU", "a", "last"), "r"));
}

TEST(InPlace, NotIfAnotherLayerReadsTheInput) {
  const std::string both =
      layer("r", "ReLU", "a", "b") + layer("sum", "test.Add", "a", "last", "bottom: 'b'");
  EXPECT_FALSE(in_place(both, "r", TANDEM_TEST));
}

TEST(InPlace, NotOverASplitsViewThatAnotherLayerReads) {
  const std::string both =
      layer("r", "ReLU", "a", "b") + layer("sum", "test.Add", "a", "last", "bottom: 'b'");
  EXPECT_FALSE(in_place(both, "r"));
}

TEST(InPlace, NotOverWhatAnEarlierBackwardReads) {
  const std::string chain = layer("r", "ReLU", "a", "b") + layer("d", "Dropout", "b", "last");
  EXPECT_TRUE(in_place(chain, "r"));
  EXPECT_FALSE(in_place(chain, "d")) << "ReLU's backward reads its outputs";
  EXPECT_TRUE(in_place(chain, "d", TANDEM_TEST));
  const std::string other = layer("d", "Dropout", "a", "b") + layer("r", "ReLU", "b", "last");
  EXPECT_TRUE(in_place(other, "d"));
  EXPECT_TRUE(in_place(other, "r"));
}

TEST(InPlace, NotOverWhatAnEarlierBackwardReadsThroughAChain) {
  const std::string chain = layer("r", "ReLU", "a", "b") + layer("d", "Dropout", "b", "c") +
                            layer("e", "Dropout", "c", "last");
  EXPECT_FALSE(in_place(chain, "d"));
  EXPECT_TRUE(in_place(chain, "e")) << "the first Dropout made a new tensor";
}

TEST(InPlace, NotIfItsOwnBackwardReadsTheInput) {
  EXPECT_FALSE(in_place(layer("s", "test.Square", "a", "last"), "s"));
  EXPECT_TRUE(in_place(layer("s", "test.Square", "a", "last"), "s", TANDEM_TEST));
}

TEST(InPlace, NeverOverTheData) {
  const Net net = build(data_layer + layer("r", "ReLU", "data", "data") +
                        inner_product_layer("ip", "data", "ip") + loss_layer);
  EXPECT_FALSE(layer_of(net, "r").runs_in_place);
}

TEST(InPlace, AChainSharesTheMemoryOfItsFirstTensor) {
  const Net net =
      build(data_layer + convolution("a", "data", "a", 4) + layer("r", "ReLU", "a", "a") +
                layer("d", "Dropout", "a", "a") + inner_product_layer("ip", "a", "ip") + loss_layer,
            TANDEM_TEST);
  EXPECT_EQ(output_of(net, "r").alias_of, layer_of(net, "a").outputs[0]);
  EXPECT_EQ(output_of(net, "d").alias_of, layer_of(net, "a").outputs[0]);
}

}  // namespace
}  // namespace tandem
