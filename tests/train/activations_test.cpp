// Activations that kernels do along give the weights that they give by themselves, bit for bit,
// with every strategy.
#include <gtest/gtest.h>

#include "tests/train/split_support.h"

namespace tandem::test {
namespace {

// `looked_at`: another layer reads what is before each ReLU, which then has a pass of its own.
NetDefinition rectified_net(bool looked_at) {
  const std::string filler = " weight_filler { type: \"xavier\" }";
  const std::string window = "convolution_param { num_output: 8 kernel_size: 3 pad: 1" + filler;
  const std::string factors =
      "scale_param { bias_term: true filler { type: \"gaussian\" mean: 1 std: 0.1 } }";
  const auto dense = [&](int outputs) {
    return fmt::format("inner_product_param {{ num_output: {}{} }}", outputs, filler);
  };
  NetWriter net("rectified");
  net.data(20);
  const auto relu = [&](const std::string& name, const std::string& from) {
    if (looked_at) net.layer("look at " + from, "Silence", {from}, {});
    net.layer(name, "ReLU", {from}, {name});
  };
  net.layer("conv1", "Convolution", window + " }").layer("scale1", "Scale", factors);
  relu("relu1", "scale1");
  net.layer("pool1", "Pooling", "pooling_param { kernel_size: 2 stride: 2 }")
      .layer("conv2", "Convolution", window + " }")
      .layer("sum2", "Eltwise", {"conv2", "pool1"}, {"sum2"});
  relu("relu2", "sum2");
  net.layer("conv3", "Convolution", window + " }").layer("scale3", "Scale", factors);
  relu("relu3", "scale3");
  net.layer("fc4", "InnerProduct", dense(16)).layer("scale4", "Scale", factors);
  relu("relu4", "scale4");
  net.layer("fc5", "InnerProduct", dense(12)).layer("relu5", "ReLU");
  net.layer("score", "InnerProduct", dense(5)).loss();
  return net.definition();
}

int done_along(const NetDefinition& definition, int32_t phase) {
  static const Registry registry = Registry::with_defaults();
  NetOptions options;
  options.phase = phase;
  options.batch = 2;
  options.data = {1, 3, 20, 20};
  int layers = 0;
  for (const Layer& layer : build_net(definition, registry, options).layers) {
    layers += layer.done_by >= 0 ? 1 : 0;
  }
  return layers;
}

class RectifiedRuns : public SplitRuns, public testing::WithParamInterface<SplitCase> {
 protected:
  static Weights run_of(const SplitCase& c, bool looked_at) {
    TrainOptions o = many(c, 8);
    o.net_definition = rectified_net(looked_at);
    if (c.strategy == "two_phase") o.strategy_options.split = "fc4";
    return run(o);
  }
};

INSTANTIATE_TEST_SUITE_P(Strategies, RectifiedRuns,
                         testing::Values(SplitCase{"sequential", 1}, SplitCase{"sequential", 2},
                                         SplitCase{"two_phase", 3}, SplitCase{"layerwise", 2},
                                         SplitCase{"hybrid", 3, conv_and_fc(2, 1)},
                                         SplitCase{"asymmetric", 2, in_groups("E=0/W=1")},
                                         SplitCase{"asymmetric", 3, in_groups("E=1/W=0,2")},
                                         SplitCase{"fc_parallel", 2, with_quota(2)},
                                         SplitCase{"fc_parallel", 3, eager(1)}),
                         [](const auto& info) { return info.param.name(); });

TEST_P(RectifiedRuns, GiveTheBitsOfRunsWithReluLayers) {
  ASSERT_EQ(done_along(rectified_net(false), TANDEM_TRAIN), 4) << "all but the one behind fc5";
  ASSERT_EQ(done_along(rectified_net(false), TANDEM_TEST), 4);
  ASSERT_EQ(done_along(rectified_net(true), TANDEM_TRAIN), 0);
  EXPECT_EQ(run_of(GetParam(), false), run_of(GetParam(), true));
}

}  // namespace
}  // namespace tandem::test
