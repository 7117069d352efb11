// The sum at the end of a residual block, computed by the kernel of the normalization before it:
// which sums, and that weights and losses are, bit for bit, those of sums by themselves.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/model/net/net_report.h"
#include "core/model/passes/build_net.h"
#include "core/schedule/strategies/common/backward_needs.h"
#include "tests/schedule/plan_checks.h"
#include "tests/schedule/plan_promises.h"
#include "tests/support/rectified_net.h"
#include "tests/support/strategy_runs.h"

namespace tandem::test {
namespace {

// What differs from a block whose sum is fused into the normalization of its second branch.
struct Block {
  std::string sum = {};  // its parameter
  std::vector<std::string> inputs = {"one", "two"};
  std::string norm = "batch_norm_param { scale_bias: true }";
  std::vector<std::pair<std::string, std::string>> between = {};  // types of layers, their input
};

// A block with a convolution on each side, one whose other side is its input, and one of FC layers.
NetDefinition blocks(const Block& block) {
  const std::string filler = " weight_filler { type: \"xavier\" }";
  const auto window = [&](int size, int stride) {
    return fmt::format(
        "convolution_param {{ num_output: 8 kernel_size: {} pad: {} stride: {} bias_term: false{} "
        "}}",
        size, size / 2, stride, filler);
  };
  const std::string dense = "inner_product_param { num_output: 12" + filler + " }";
  NetWriter net("blocks");
  net.data(20)
      .layer("conv1", "Convolution", window(3, 1))
      .layer("relu1", "ReLU", {"conv1"}, {"conv1"})
      .layer("one_conv", "Convolution", {"conv1"}, {"one_conv"}, window(1, 2))
      .layer("one", "BatchNorm", {"one_conv"}, {"one"}, block.norm)
      .layer("two_conv", "Convolution", {"conv1"}, {"two_conv"}, window(3, 2))
      .layer("two", "BatchNorm", {"two_conv"}, {"two"}, block.norm);
  for (const auto& [type, from] : block.between) {
    const std::string name = type + from;
    const bool is_read_only = type == "Silence";
    net.layer(name, type, {from}, is_read_only ? std::vector<std::string>{} : std::vector{name});
  }
  net.layer("sum1", "Eltwise", block.inputs, {"sum1"}, block.sum)
      .layer("relu2", "ReLU", {"sum1"}, {"sum1"})
      .layer("conv3", "Convolution", {"sum1"}, {"conv3"}, window(3, 1))
      .layer("three", "BatchNorm", {"conv3"}, {"three"}, block.norm)
      .layer("sum2", "Eltwise", {"sum1", "three"}, {"sum2"}, block.sum)
      .layer("conv4", "Convolution", {"sum2"}, {"conv4"}, window(3, 2))
      .layer("fc5", "InnerProduct", {"conv4"}, {"fc5"}, dense)
      .layer("fc6", "InnerProduct", {"fc5"}, {"fc6"}, dense)
      .layer("four", "BatchNorm", {"fc6"}, {"four"}, block.norm)
      .layer("sum3", "Eltwise", {"fc5", "four"}, {"sum3"}, block.sum)
      .layer("score", "InnerProduct", {"sum3"}, {"score"}, dense);
  return read_net_text(net.loss().text());
}

// Sums with coefficients that are 1 in float32 only: the same values, and no fusion.
NetDefinition separate_blocks() {
  return blocks({.sum = "eltwise_param { coeff: 1.00000001 coeff: 1.00000001 }"});
}

int addend_writer(const Net& net, const std::string& layer) {
  const int addend = net.layer(net.find_layer(layer)).addend;
  return addend < 0 ? -1 : net.tensor(addend).producer;
}

TEST(FusedSums, AreComputedByTheLastOfTheirInputsInBothPhases) {
  for (const int32_t phase : {TANDEM_TRAIN, TANDEM_TEST}) {
    const Net net = built(blocks({}), "cpu", phase);
    const int two = net.find_layer("two"), sum = net.find_layer("sum1");
    EXPECT_EQ(net.layer(sum).fused_into, two);
    EXPECT_TRUE(net.layer(sum).runs_in_place);
    EXPECT_EQ(addend_writer(net, "two"), net.find_layer("one"));
    EXPECT_EQ(net.layer(two).activation, TANDEM_ACTIVATION_RELU);
    EXPECT_EQ(net.fused_layer(two), net.find_layer("relu2"));
    EXPECT_EQ(net.layer(net.find_layer("relu2")).fused_into, two);
    EXPECT_EQ(net.layer(net.find_layer("one")).addend, -1);
    EXPECT_EQ(net.layer(net.find_layer("sum2")).fused_into, net.find_layer("three"));
    EXPECT_EQ(fusion_text(net, net.layer(sum).fused_into), "fused into two");
  }
}

TEST(FusedSums, LeaveTheGradientOfTheirReluToAnotherPass) {
  const Net net = built(blocks({}));
  EXPECT_NE(net.layer(net.find_layer("relu2")).gradient_fused_into, net.find_layer("two"));
  EXPECT_TRUE(net.makes_gradient_views(net.find_layer("sum1")));
}

TEST(FusedSums, AreThoseOfTheFirstInputToo) {
  const Net net = built(blocks({.inputs = {"two", "one"}}));
  EXPECT_EQ(net.layer(net.find_layer("sum1")).fused_into, net.find_layer("two"));
}

void expect_separate(const Block& block) {
  const Net net = built(blocks(block));
  EXPECT_EQ(net.layer(net.find_layer("sum1")).fused_into, -1);
  for (const char* norm : {"one", "two"}) EXPECT_EQ(net.layer(net.find_layer(norm)).addend, -1);
}

TEST(FusedSums, AreOfTwoInputsWithoutFactors) {
  expect_separate({.sum = "eltwise_param { coeff: 1 coeff: -1 }"});
  expect_separate({.sum = "eltwise_param { operation: PROD }"});
  expect_separate({.inputs = {"one", "two", "two_conv"}});
}

TEST(FusedSums, NeedTheOtherInputBeforeTheKernelRuns) {
  expect_separate({.inputs = {"two", "TanHone"}, .between = {{"TanH", "one"}}});
}

TEST(FusedSums, AloneReadTheOutputOfTheKernel) {
  expect_separate({.between = {{"Silence", "two"}}});
  expect_separate({.inputs = {"two", "two"}});
}

TEST(FusedSums, NeedAKernelThatAdds) {
  expect_separate({.norm = "batch_norm_param { scale_bias: false }"});
}

// A label is float32 in every precision. Without the fusion the sum has inputs of two dtypes.
TEST(FusedSums, HaveInputsOfOneDtype) {
  NetWriter net("labels");
  net.data(20)
      .layer("fc", "InnerProduct", "inner_product_param { num_output: 1 }")
      .layer("norm", "BatchNorm", "batch_norm_param { scale_bias: true }")
      .layer("sum", "Eltwise", {"norm", "label"}, {"sum"})
      .layer("loss", "Reduction", {"sum"}, {"loss"},
             "reduction_param { operation: SUMSQ } loss_weight: 1");
  const NetDefinition definition = read_net_text(net.text());
  NetOptions options;
  options.batch = 2;
  options.data = {1, 3, 20, 20};
  const Registry registry = Registry::with_defaults();
  const Net narrow = build_net(definition, registry, options);
  EXPECT_EQ(narrow.layer(narrow.find_layer("norm")).addend, narrow.label);
  options.precision = TANDEM_BFLOAT16;
  const Net mixed = build_net(definition, registry, options);
  ASSERT_EQ(mixed.tensor(mixed.layer(mixed.find_layer("norm")).outputs[0]).dtype, TANDEM_BFLOAT16);
  EXPECT_EQ(mixed.layer(mixed.find_layer("norm")).addend, -1);
}

// The memory of the kernel's output has no room for the gradient that the sum's output has.
TEST(FusedSums, AreNotOfAFrozenBranchBesideATrainedOne) {
  const std::string frozen = "param { lr_mult: 0 } param { lr_mult: 0 } ";
  const std::string sums = "param { lr_mult: 0 } param { lr_mult: 0 } param { lr_mult: 0 } ";
  NetWriter net("frozen");
  net.data(20)
      .layer("trained", "Convolution", {"data"}, {"trained"},
             "convolution_param { num_output: 8 kernel_size: 3 }")
      .layer("other", "Convolution", {"data"}, {"other"},
             frozen + "convolution_param { num_output: 8 kernel_size: 3 }")
      .layer("norm", "BatchNorm", {"other"}, {"norm"},
             sums + frozen + "batch_norm_param { scale_bias: true }")
      .layer("sum", "Eltwise", {"trained", "norm"}, {"sum"})
      .layer("score", "InnerProduct", "inner_product_param { num_output: 5 }");
  const Net made = built(read_net_text(net.loss().text()));
  const Layer& sum = made.layer(made.find_layer("sum"));
  EXPECT_EQ(sum.fused_into, -1);
  EXPECT_TRUE(sum.runs_in_place);
  EXPECT_EQ(made.tensor(sum.inputs[0]).producer, made.find_layer("trained"));
}

TEST(FusedSums, HaveCostsOfTheirOwn) {
  const Net fused = built(blocks({})), separate = built(separate_blocks());
  const auto key = [](const Net& net, LayerPass pass) {
    return pass_key(net, net.find_layer("two"), pass, TANDEM_ACTIVATION_RELU);
  };
  EXPECT_EQ(key(fused, LayerPass::forward), "two forward+sum+relu");
  EXPECT_EQ(key(separate, LayerPass::forward), "two forward+relu");
  EXPECT_EQ(key(fused, LayerPass::forward_statistics),
            key(separate, LayerPass::forward_statistics));
}

// Of a device that runs the layer again for its backward pass.
TEST(FusedSums, AreNeededWithTheirOtherInput) {
  const Net net = built(blocks({}));
  std::vector<bool> backward(net.layers.size(), false);
  backward[size_t(net.find_layer("two"))] = true;
  const BackwardNeeds needs = backward_needs(net, backward);
  const int one = net.find_layer("one");
  EXPECT_EQ(needs.after[size_t(one)], net.layer(one).outputs);
}

TEST(FusedSums, CanBeSeparatedAgain) {
  Net net = built(blocks({}));
  net.separate_fusions();
  for (const Layer& layer : net.layers) {
    EXPECT_EQ(layer.addend, -1) << layer.name;
    EXPECT_EQ(layer.fused_into, -1) << layer.name;
  }
}

TEST(FusedSums, TakeTheTimeOfReadingOneTensorMore) {
  const Net fused = built(blocks({})), separate = built(separate_blocks());
  const auto seconds = [](const Net& net, const char* layer) {
    return CostTable().pass_seconds(net, net.find_layer(layer), LayerPass::forward, 2);
  };
  EXPECT_EQ(seconds(fused, "sum1"), 0);
  EXPECT_GT(seconds(fused, "two"), seconds(separate, "two"));
  EXPECT_LT(seconds(fused, "two"), seconds(separate, "two") + seconds(separate, "sum1"));
}

class FusedSumRuns : public StrategyRuns, public testing::WithParamInterface<StrategyCase> {
 protected:
  static Weights run_of(const NetDefinition& definition, bool recomputes) {
    TrainOptions o = many(GetParam(), 5);
    o.net_text = write_net(definition);
    o.recompute = recomputes;
    return run(o);
  }
};

INSTANTIATE_TEST_SUITE_P(Strategies, FusedSumRuns,
                         testing::Values(StrategyCase{"sequential", 1},
                                         StrategyCase{"sequential", 3},
                                         StrategyCase{"two_phase", 2, {{"split", "fc5"}}},
                                         StrategyCase{"two_phase", 2, {{"split", "sum1"}}},
                                         StrategyCase{"two_phase", 3, {{"split", "sum3"}}},
                                         StrategyCase{"layerwise", 3},
                                         StrategyCase{"fc_parallel", 2, {{"quota", int64_t{1}}}},
                                         StrategyCase{"fc_parallel", 3, {{"quota", int64_t{1}}}},
                                         StrategyCase{"hybrid", 2}, StrategyCase{"hybrid", 3}),
                         [](const auto& info) { return info.param.name(); });

TEST_P(FusedSumRuns, GiveTheBitsOfRunsWhoseSumsAreSeparate) {
  EXPECT_EQ(run_of(blocks({}), false), run_of(separate_blocks(), false));
}

TEST_P(FusedSumRuns, GiveThemWithRecomputedLayers) {
  EXPECT_EQ(run_of(blocks({}), true), run_of(separate_blocks(), false));
}

TEST(FusedSumPlans, HaveNoPassOfTheSumNorOfItsReluForward) {
  const Net net = built(blocks({}));
  const StrategyInputs inputs = inputs_of(net, 2);
  const Plan plan = build_plan("layerwise", inputs);
  expect_no_race(plan);
  int adding = 0;
  for (const Task& task : plan.tasks) {
    for (const char* name : {"forward sum", "forward relu2", "backward_data sum1 @"}) {
      EXPECT_FALSE(task.label.starts_with(name)) << task.label;
    }
    const auto* work = std::get_if<LayerWork>(&task.work);
    if (work == nullptr || work->pass != LayerPass::forward) continue;
    adding += plan.bindings[size_t(work->binding)].addend.buffer >= 0 ? 1 : 0;
  }
  EXPECT_EQ(adding, 3 * inputs.devices);
}

}  // namespace
}  // namespace tandem::test
