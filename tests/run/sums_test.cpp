// Sums whose inputs share its gradient give the weights of sums that copy it, bit for bit, with
// every strategy, and no strategy computes or sends it twice.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/schedule/plan_checks.h"
#include "tests/schedule/plan_promises.h"
#include "tests/support/rectified_net.h"
#include "tests/support/strategy_runs.h"

namespace tandem::test {
namespace {

// A loss looks at an input of a sum as at a target, and a pooling before a sum applies a ReLU's
// gradient. `shares`: or the sum's coefficients are 1 in float32 only.
NetDefinition summed_net(bool shares) {
  const std::string one = shares ? "1" : "1.00000001";
  const std::string filler = " weight_filler { type: \"xavier\" }";
  const std::string window = "convolution_param { num_output: 8 kernel_size: 3 pad: 1" + filler;
  NetWriter net("summed");
  net.data(20)
      .layer("conv1", "Convolution", window + " }")
      .layer("relu1", "ReLU", {"conv1"}, {"conv1"})
      .layer("pool1", "Pooling", {"conv1"}, {"pool1"}, "pooling_param { kernel_size: 2 stride: 2 }")
      .layer("left", "Convolution", {"pool1"}, {"left"}, window + " }")
      .layer("right", "Convolution", {"pool1"}, {"right"}, window + " }")
      .layer("other", "Convolution", {"pool1"}, {"other"}, window + " }")
      .layer("target", "Convolution", {"pool1"}, {"target"}, window + " }")
      .layer("near", "EuclideanLoss", {"left", "target"}, {"near"}, "loss_weight: 0.01")
      .layer("sum", "Eltwise", {"right", "other", "target"}, {"sum"},
             fmt::format("eltwise_param {{ coeff: {0} coeff: {0} coeff: {0} }}", one))
      .layer("score", "InnerProduct", {"sum"}, {"score"},
             "inner_product_param { num_output: 5" + filler + " }");
  return read_net_text(net.loss().text());
}

class SummedRuns : public StrategyRuns, public testing::WithParamInterface<StrategyCase> {
 protected:
  static Weights run_of(const StrategyCase& c, bool shares, bool recomputes) {
    TrainOptions o = many(c, 4);
    o.net_text = write_net(summed_net(shares));
    o.recompute = recomputes;
    if (c.strategy == "two_phase") o.strategy_options["split"] = "score";
    return run(o);
  }
};

INSTANTIATE_TEST_SUITE_P(Strategies, SummedRuns,
                         testing::Values(StrategyCase{"sequential", 1},
                                         StrategyCase{"two_phase", 3}, StrategyCase{"layerwise", 2},
                                         StrategyCase{"asymmetric", 2, in_groups("E=0/W=1")},
                                         StrategyCase{"asymmetric", 3, in_groups("E=1/W=0,2")},
                                         StrategyCase{"asymmetric", 3, in_groups("E=0,1/W=2")}),
                         [](const auto& info) { return info.param.name(); });

TEST_P(SummedRuns, GiveTheBitsOfRunsWhoseSumsCopyGradients) {
  const Net net = built(summed_net(true));
  ASSERT_TRUE(net.makes_gradient_views(net.find_layer("sum")));
  ASSERT_FALSE(net.makes_gradient_views(net.find_layer("near")));
  ASSERT_EQ(net.layer(net.find_layer("relu1")).gradient_fused_into, net.find_layer("pool1"));
  const Net copying = built(summed_net(false));
  ASSERT_FALSE(copying.makes_gradient_views(copying.find_layer("sum")));
  EXPECT_EQ(run_of(GetParam(), true, false), run_of(GetParam(), false, false));
}
TEST_P(SummedRuns, GiveThemWithRecomputedLayers) {
  EXPECT_EQ(run_of(GetParam(), true, true), run_of(GetParam(), false, false));
}

Plan plan_of(const Net& net, const std::string& strategy, const StrategyOptions& options) {
  StrategyInputs inputs = inputs_of(net, 2);
  inputs.options = options;
  return build_plan(strategy, inputs);
}

TEST(Sums, HaveNoBackwardPassInAnyStrategyAndTheirGradientIsSentOnce) {
  const Net net = built(summed_net(true));
  const Plan plan = plan_of(net, "asymmetric", in_groups("E=0/W=1"));
  expect_no_race(plan);
  int sent = 0;
  for (const Task& task : plan.tasks) {
    EXPECT_NE(task.label.substr(0, 19), "backward_data sum @") << task.label;
    EXPECT_NE(task.label, "forward sum @0 of others");
    // The pooling applies its gradient.
    EXPECT_NE(task.label.substr(0, 21), "backward_data relu1 @") << task.label;
    const bool is_shared = task.label.find("send right activation gradients") == 0 ||
                           task.label.find("send other activation gradients") == 0;
    if (is_shared && task.label.find("of @") == std::string::npos) ++sent;
  }
  EXPECT_EQ(sent, 1);
}

// Its output and its input have one name; each tensor is sent by the name of its producer.
TEST(AsymmetricPlans, TakeANetInWhichTwoTensorsHaveOneName) {
  const std::string window = "convolution_param { num_output: 4 kernel_size: 3 pad: 1 }";
  NetWriter net("names");
  net.data(20)
      .layer("c0", "Convolution", {"data"}, {"x"}, window)
      .layer("c1", "Convolution", {"x"}, {"y"}, window)
      .layer("relu", "ReLU", {"x"}, {"x"})
      .layer("both", "Concat", {"x", "y"}, {"both"})
      .layer("score", "InnerProduct", {"both"}, {"score"}, "inner_product_param { num_output: 5 }");
  expect_no_race(
      plan_of(built(read_net_text(net.loss().text())), "asymmetric", in_groups("E=0/W=1")));
}

}  // namespace
}  // namespace tandem::test
