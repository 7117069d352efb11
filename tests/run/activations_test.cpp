// Activations that kernels fuse, and gradients that sums share, give the same weights as separate
// ones, bit for bit, with every strategy.
#include <gtest/gtest.h>

#include "tests/support/rectified_net.h"
#include "tests/support/strategy_runs.h"

namespace tandem::test {
namespace {

class RectifiedRuns : public StrategyRuns, public testing::WithParamInterface<StrategyCase> {
 protected:
  static Weights run_of(const StrategyCase& c, bool looked_at) {
    TrainOptions o = many(c, 8);
    o.net_text = write_net(rectified_net(looked_at));
    if (c.strategy == "two_phase") o.strategy_options["split"] = "fc4";
    return run(o);
  }
};

INSTANTIATE_TEST_SUITE_P(Strategies, RectifiedRuns,
                         testing::Values(StrategyCase{"sequential", 1},
                                         StrategyCase{"sequential", 2},
                                         StrategyCase{"two_phase", 3}, StrategyCase{"layerwise", 2},
                                         StrategyCase{"hybrid", 3, conv_and_fc(2, 1)},
                                         StrategyCase{"asymmetric", 2, in_groups("E=0/W=1")},
                                         StrategyCase{"asymmetric", 3, in_groups("E=1/W=0,2")},
                                         StrategyCase{"fc_parallel", 2, with_quota(2)},
                                         StrategyCase{"fc_parallel", 3, eager(1)}),
                         [](const auto& info) { return info.param.name(); });

TEST_P(RectifiedRuns, GiveTheBitsOfRunsWithReluLayers) {
  ASSERT_EQ(fusion_text(rectified_net(false), "cpu", TANDEM_TRAIN), 5) << "not after fc5";
  ASSERT_EQ(fusion_text(rectified_net(false), "cpu", TANDEM_TEST), 5);
  ASSERT_EQ(fusion_text(rectified_net(true), "cpu", TANDEM_TRAIN), 0);
  EXPECT_EQ(run_of(GetParam(), false), run_of(GetParam(), true));
}

Net rectified(bool looked_at) {
  return built(rectified_net(looked_at));
}

// The tensor that the layer reads as input `number`.
int input_of(const Net& net, const std::string& layer, size_t number) {
  return net.layer(net.find_layer(layer)).inputs.at(number);
}

int output_of(const Net& net, const std::string& layer) {
  return net.layer(net.find_layer(layer)).outputs.at(0);
}

TEST(Sums, GiveTheirGradientToAllTheirInputs) {
  const Net net = rectified(false);
  for (const std::string sum : {"sum2", "sum"}) {
    for (const size_t input : {0, 1}) {
      EXPECT_EQ(net.gradient_of(input_of(net, sum, input)), net.gradient_of(output_of(net, sum)));
    }
    EXPECT_TRUE(net.makes_gradient_views(net.find_layer(sum))) << sum;
  }
}

TEST(Sums, HaveGradientsOfTheirOwnWhereALayerRunsInPlaceBefore) {
  const Net net = rectified(true);
  EXPECT_FALSE(net.makes_gradient_views(net.find_layer("sum")));
  EXPECT_NE(net.gradient_of(input_of(net, "sum", 0)), net.gradient_of(input_of(net, "sum", 1)));
}

// Of the second input it needs the extents only, whose gradient it neither has nor shares.
TEST(Sums, LeaveTheBackwardPassToALayerThatLooksAtAnInput) {
  const std::string window = "convolution_param { num_output: 4 kernel_size: ";
  NetWriter writer("looked_at");
  writer.data(20)
      .layer("conv1", "Convolution", window + "3 }")
      .layer("small", "Convolution", window + "3 }")
      .layer("large", "Convolution", {"conv1"}, {"large"}, window + "1 }")
      .layer("cut", "Crop", {"large", "small"}, {"cut"}, "crop_param { axis: 2 offset: 1 }")
      .layer("sum", "Eltwise", {"small", "cut"}, {"sum"})
      .layer("score", "InnerProduct",
             "inner_product_param { num_output: 5 weight_filler { type: \"xavier\" } }")
      .loss();
  const Net net = built(read_net_text(writer.text()));
  EXPECT_TRUE(net.makes_gradient_views(net.find_layer("sum")));
  EXPECT_FALSE(net.makes_gradient_views(net.find_layer("cut")));
}

TEST(Splits, ComputeTheGradientOfTheReluBefore) {
  const Net net = rectified(false);
  const int split = net.find_layer("relu2_split");
  EXPECT_EQ(net.layer(net.find_layer("relu2")).gradient_fused_into, split);
  EXPECT_TRUE(net.layer(split).backward_reads_inputs());
  EXPECT_FALSE(net.layer(net.find_layer("pool1_split")).backward_reads_inputs());
  const Net separate = rectified(true);
  EXPECT_EQ(separate.layer(separate.find_layer("relu2")).gradient_fused_into, -1);
}

TEST(Convolutions, ComputeTheGradientOfTheReluBefore) {
  const Net net = rectified(false);
  const Layer& relu = net.layer(net.find_layer("relu3a"));
  EXPECT_EQ(relu.fused_into, net.find_layer("conv3a"));
  EXPECT_EQ(relu.gradient_fused_into, net.find_layer("conv3"));
}

}  // namespace
}  // namespace tandem::test
