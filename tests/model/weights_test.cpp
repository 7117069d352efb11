// The weights of a net: names, shapes, offsets, rules and sharing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/model/net_test.h"

#include "core/model/net/initial_weights.h"

namespace tandem {
namespace {

using namespace test;
using testing::ElementsAre;
using testing::HasSubstr;

const std::string two_phases = data_layer + convolution("a", "data", "a", 5) +
                               convolution("b", "a", "b", 6, "include { phase: TRAIN }") +
                               convolution("c", "a", "b", 7, "include { phase: TEST }") +
                               inner_product_layer("ip", "a", "ip") + loss_layer +
                               inner_product_layer("aux", "b", "aux", "include { phase: TRAIN }") +
                               layer("auxloss", "SoftmaxWithLoss", "aux", "auxloss",
                                     "bottom: 'label' include { phase: TRAIN }");

TEST(Weights, AreTheSameInEveryPhase) {
  const Net train = build(two_phases);
  const Net test = build(two_phases, TANDEM_TEST);
  EXPECT_THAT(weight_names(train),
              ElementsAre("a.weight", "a.bias", "b.weight", "b.bias", "c.weight", "c.bias",
                          "ip.weight", "ip.bias", "aux.weight", "aux.bias"));
  ASSERT_EQ(weight_names(train), weight_names(test));
  for (size_t i = 0; i < train.weights.size(); ++i) {
    EXPECT_EQ(train.weights[i].offset, test.weights[i].offset);
    EXPECT_TRUE(equal(train.weights[i].shape, test.weights[i].shape));
  }
  EXPECT_EQ(train.weight_floats, test.weight_floats);
  EXPECT_EQ(initial_weights(train, 1), initial_weights(test, 1));
}

TEST(Weights, OfTheOtherPhaseHaveNoLayerAndAreNotTrained) {
  const Net net = build(two_phases);
  EXPECT_EQ(net.weights[4].layer, -1);
  EXPECT_FALSE(net.weights[4].trained());
  EXPECT_EQ(net.weights[2].layer, net.find_layer("b"));
  EXPECT_TRUE(net.weights[2].trained());
}

TEST(Weights, BeginAtMultiplesOfSixteenFloats) {
  const Net net = build(two_phases);
  int64_t end = 0;
  for (const WeightArray& weight : net.weights) {
    EXPECT_EQ(weight.offset % 16, 0);
    EXPECT_GE(weight.offset, end);
    EXPECT_LT(weight.offset, end + 16);
    EXPECT_EQ(weight.count, element_count(weight.shape));
    end = weight.offset + weight.count;
  }
  EXPECT_GE(net.weight_floats, end);
}

TEST(Weights, HaveTheirRulesInOrder) {
  const Net net =
      build(data_layer +
            inner_product_layer("ip", "data", "ip",
                                "param { lr_mult: 3 } param { lr_mult: 2 decay_mult: 0 }") +
            loss_layer);
  EXPECT_EQ(net.weights[0].rate_multiplier, 3);
  EXPECT_EQ(net.weights[0].decay_multiplier, 1);
  EXPECT_EQ(net.weights[1].rate_multiplier, 2);
  EXPECT_EQ(net.weights[1].decay_multiplier, 0);
}

TEST(Weights, MoreRulesThanWeightsAreRefused) {
  EXPECT_EQ(build_failure(data_layer +
                          inner_product_layer("ip", "data", "ip", "param {} param {} param {}") +
                          loss_layer),
            "layer 'ip' (InnerProduct): has 3 param blocks for 2 weights (net.prototxt:2)");
}

TEST(Weights, ManyWeightsAndPersistentStatesAreListed) {
  const Net net = build(data_layer + layer("s", "test.Strange", "data", "s") +
                        inner_product_layer("ip", "s", "ip") + loss_layer);
  ASSERT_EQ(net.weights.size(), 13u);
  EXPECT_EQ(net.weights[0].filler.type, "xavier");
  const WeightArray& mean = net.weights[10];
  EXPECT_EQ(mean.name, "s.mean");
  EXPECT_EQ(mean.kind, TANDEM_STATE);
  EXPECT_FALSE(mean.trained());
  EXPECT_EQ(initial_weights(net, 1)[mean.offset + 4], 0.25F);
}

TEST(Weights, OfOneLayerMustBeTheSameInBothPhases) {
  EXPECT_EQ(build_failure(data_layer + layer("f", "test.Fickle", "data", "f") +
                          inner_product_layer("ip", "f", "ip") + loss_layer),
            "layer 'f' (test.Fickle): its plugin declares other weights in the other phase "
            "(net.prototxt:2)");
}

TEST(Weights, OfOneParamNameAreOneArray) {
  const std::string shared = "param { name: 'w' } param { name: 'b' }";
  const Net net = build(data_layer + convolution("a", "data", "a", 3, shared) +
                        convolution("b", "a", "b", 3, shared) +
                        inner_product_layer("ip", "b", "ip") + loss_layer);
  EXPECT_THAT(weight_names(net), ElementsAre("a.weight", "a.bias", "ip.weight", "ip.bias"));
  EXPECT_EQ(layer_of(net, "a").weights, layer_of(net, "b").weights);
  EXPECT_EQ(net.weights[0].layer, net.find_layer("a"));
}

TEST(Weights, SharedByLayersMustHaveOneShapeAndMultiplier) {
  EXPECT_EQ(build_failure(data_layer + convolution("a", "data", "a", 3, "param { name: 'w' }") +
                          convolution("b", "a", "b", 4, "param { name: 'w' }") +
                          inner_product_layer("ip", "b", "ip") + loss_layer),
            "layer 'b' (Convolution): weight 'b.weight' has the shape 4x3x3x3, but 'a.weight' is "
            "3x3x3x3 under the shared name 'w', in layer 'a' (Convolution) (net.prototxt:2) "
            "(net.prototxt:3)");
  const std::string twice = "param { name: 'w' lr_mult: 1 } param { name: 'b' decay_mult: 0 }";
  EXPECT_EQ(build_failure(data_layer + convolution("a", "data", "a", 3, twice) +
                          convolution("b", "a", "b", 3, "param { name: 'w' lr_mult: 2 }") +
                          inner_product_layer("ip", "b", "ip") + loss_layer),
            "layer 'b' (Convolution): weight 'b.weight', shared under the name 'w', has lr_mult 2, "
            "but 1 in layer 'a' (Convolution) (net.prototxt:2) (net.prototxt:3)");
  EXPECT_THAT(
      build_failure(data_layer +
                    convolution("a", "data", "a", 3, "param { name: 'w' } param { name: 'w' }") +
                    inner_product_layer("ip", "a", "ip") + loss_layer),
      HasSubstr("has the shape"));
}

TEST(Weights, AMultiplierOfOneLayerHoldsForAllThatShare) {
  const Net net = build(data_layer + convolution("a", "data", "a", 3, "param { name: 'w' }") +
                        convolution("b", "a", "b", 3, "param { name: 'w' lr_mult: 2 }") +
                        convolution("c", "b", "c", 3, "param { name: 'w' decay_mult: 0 }") +
                        inner_product_layer("ip", "c", "ip") + loss_layer);
  EXPECT_EQ(net.weights[0].rate_multiplier, 2);
  EXPECT_EQ(net.weights[0].decay_multiplier, 0);
}

TEST(Weights, PermissiveSharingAcceptsAnyShapeWithAsManyValues) {
  const auto net = [](const std::string& mode) {
    return data_layer + inner_product_layer("a", "data", "a", "param { name: 'w' }") +
           layer("b", "InnerProduct", "data", "b",
                 "inner_product_param { num_output: 4 } param { name: 'w' " + mode + " }") +
           layer("c", "Convolution", "data", "c",
                 "convolution_param { num_output: 4 kernel_size: 8 } param { name: 'w' " + mode +
                     " }") +
           layer("sum", "test.Add", "a", "ip", "bottom: 'b'") + loss_layer;
  };
  const Net built = build(net("share_mode: PERMISSIVE"));
  const Layer& c = layer_of(built, "c");
  EXPECT_EQ(c.weights[0], layer_of(built, "a").weights[0]);
  EXPECT_FALSE(equal(c.weight_shapes[0], built.weights[0].shape))
      << "its kernel sees its own shape";
  EXPECT_THAT(build_failure(net("share_mode: STRICT")),
              HasSubstr("; share_mode: PERMISSIVE allows it"));
}

}  // namespace
}  // namespace tandem
