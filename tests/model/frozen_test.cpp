// Layers that keep their weights, and layers with another rate.
#include "core/model/net/frozen.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/model/net_test.h"

namespace tandem {
namespace {

using namespace test;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string two_convolutions = data_layer + convolution("conv1", "data", "conv1", 4) +
                                     convolution("conv2", "conv1", "conv2", 4) +
                                     inner_product_layer("ip", "conv2", "ip") + loss_layer;

NetDefinition freeze(const std::string& text, const std::vector<std::string>& layers) {
  const NetDefinition definition = parse_definition(text);
  return with_frozen_layers(definition, build(text), layers);
}

TEST(FrozenLayers, AreNamedByPatterns) {
  const Net net = build(two_convolutions);
  EXPECT_THAT(layers_matching("conv*", net), ElementsAre("conv1", "conv2"));
  EXPECT_THAT(layers_matching("conv[2-9]", net), ElementsAre("conv2"));
  EXPECT_THAT(layers_matching("ip", net), ElementsAre("ip"));
}

TEST(FrozenLayers, APatternThatMatchesNothingIsRefusedWithNearNames) {
  const Net net = build(two_convolutions);
  EXPECT_THAT(
      message_of([&] { (void)layers_matching("conv3", net); }),
      AllOf(HasSubstr("--freeze conv3"), HasSubstr("did you mean"), HasSubstr("conv1, conv2, ip")));
  EXPECT_THAT(message_of([&] { (void)layers_matching("loss", net); }), HasSubstr("with weights"));
}

TEST(FrozenLayers, HaveNoBackwardPassWhereNothingBelowIsTrained) {
  const Net net = build(write_net(freeze(two_convolutions, {"conv1", "conv2"})));
  for (const char* name : {"conv1", "conv2"}) {
    EXPECT_FALSE(layer_of(net, name).has_backward()) << name;
    EXPECT_FALSE(output_of(net, name).has_gradient) << name;
  }
  EXPECT_FALSE(layer_of(net, "ip").wants_backward_data);
  EXPECT_TRUE(layer_of(net, "ip").wants_backward_weights);
}

TEST(FrozenLayers, LeaveTheOriginalAsItIs) {
  const NetDefinition definition = parse_definition(two_convolutions);
  const std::string before = write_net(definition);
  (void)with_frozen_layers(definition, build(two_convolutions), {"conv1"});
  EXPECT_EQ(write_net(definition), before);
}

TEST(FrozenLayers, FreezeTheLayersThatShareTheirWeights) {
  const std::string shared = "param { name: 'w' lr_mult: 1 } param { lr_mult: 1 }";
  const std::string text = data_layer + inner_product_layer("a", "data", "a", shared) +
                           inner_product_layer("b", "data", "b", shared) +
                           layer("ip", "test.Add", "a", "ip", "bottom: 'b'") + loss_layer;
  const Net net = build(write_net(freeze(text, {"a"})));
  EXPECT_FALSE(net.weight(layer_of(net, "a").weights[0]).trained());
  EXPECT_FALSE(net.weight(layer_of(net, "a").weights[1]).trained());
  EXPECT_TRUE(net.weight(layer_of(net, "b").weights[1]).trained());
}

TEST(FrozenLayers, OfBatchNormUseTheirRunningStatistics) {
  const std::string text = data_layer + convolution("conv1", "data", "conv1", 4) +
                           layer("norm", "BatchNorm", "conv1", "conv1",
                                 "batch_norm_param { use_global_stats: false eps: 0.5 }") +
                           inner_product_layer("ip", "conv1", "ip") + loss_layer;
  const NetDefinition frozen = with_frozen_layers(parse_definition(text), Net{}, {"norm"});
  const Field* block = frozen.layers[2].body.find("batch_norm_param");
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(block->message->all("use_global_stats").size(), 1U);
  EXPECT_EQ(block->message->find("use_global_stats")->text, "true");
  EXPECT_EQ(block->message->find("eps")->text, "0.5");
  EXPECT_EQ(parse_definition(text).layers[2].body.find("batch_norm_param")->message->fields[0].text,
            "false");
}

TEST(NormalizingLayers, AreBatchNormAndTheScaleThatTakesItsOutput) {
  const std::string text = data_layer + layer("norm", "BatchNorm", "data", "x") +
                           layer("scale", "Scale", "x", "x") + layer("relu", "ReLU", "x", "x") +
                           layer("other", "Scale", "x", "ip") + loss_layer;
  EXPECT_THAT(normalizing_layers(parse_definition(text)), ElementsAre("norm", "scale"));
  const std::string one = data_layer + layer("norm", "BatchNormScale", "data", "ip") + loss_layer;
  EXPECT_THAT(normalizing_layers(parse_definition(one)), ElementsAre("norm"));
  EXPECT_THAT(normalizing_layers(parse_definition(two_convolutions)), IsEmpty());
}

TEST(Rates, OfALayerAreMultiplied) {
  const std::string text =
      data_layer + convolution("a", "data", "a", 4) +
      inner_product_layer("ip", "a", "ip", "param { lr_mult: 2 decay_mult: 0 }") + loss_layer;
  const Net net = build(write_net(with_rates(parse_definition(text), build(text), {"ip"}, 10)));
  const Layer& layer = layer_of(net, "ip");
  EXPECT_EQ(net.weight(layer.weights[0]).rate_multiplier, 20);
  EXPECT_EQ(net.weight(layer.weights[0]).decay_multiplier, 0);
  EXPECT_EQ(net.weight(layer.weights[1]).rate_multiplier, 10);
  EXPECT_EQ(net.weight(layer_of(net, "a").weights[0]).rate_multiplier, 1);
}

}  // namespace
}  // namespace tandem
