// --recompute changes what a run keeps in memory, and none of its bits: weights and moving averages
// are those of a run without, with every strategy, and in a run that begins it later.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/model/adapted/models.h"
#include "core/run/folder/run_folder.h"
#include "core/session/session.h"
#include "include/tandem/net.h"
#include "tests/support/cpu_precision.h"
#include "tests/support/run_support.h"

namespace tandem::test {
namespace {

// All that may be computed again: BatchNorms with fused ReLUs, two of which only a sum reads, one
// apart from its Scale, pooling, LRN, a Concat and dropout of its own memory. LRN in place of
// BatchNorm, unless it may mix samples.
NetDefinition recomputed_net(bool mixes_samples = true) {
  const std::string filler = "weight_filler { type: \"xavier\" }";
  const std::string fraction = "moving_average_fraction: 0.9";
  const std::string params = "batch_norm_param { scale_bias: true " + fraction + " }";
  NetWriter net("recomputed");
  const auto convolution = [&](const std::string& name, const std::string& input, int outputs,
                               const std::string& more) {
    net.layer(name, "Convolution", {input}, {name},
              fmt::format("convolution_param {{ num_output: {} {} {} }}", outputs, more, filler));
  };
  const auto dense = [&](const std::string& name, int outputs) {
    net.layer(name, "InnerProduct",
              fmt::format("inner_product_param {{ num_output: {} {} }}", outputs, filler));
  };
  const auto relu = [&](const std::string& of) { net.layer(of + "_relu", "ReLU", {of}, {of}); };
  const auto norm = [&](const std::string& name, const std::string& parameters) {
    if (mixes_samples) net.layer(name, "BatchNorm", parameters);
    if (!mixes_samples) net.layer(name, "LRN", "lrn_param { local_size: 3 }");
  };
  net.data(20);
  convolution("conv0", "data", 8, "kernel_size: 3 pad: 1");
  relu("conv0");
  net.layer("pool0", "Pooling", "pooling_param { pool: MAX kernel_size: 3 stride: 1 pad: 1 }");
  convolution("conv1", "pool0", 16, "kernel_size: 5 pad: 2");
  norm("norm1", params);
  relu("norm1");
  net.layer("pool1", "Pooling", "pooling_param { pool: MAX kernel_size: 3 stride: 2 }");
  convolution("conv2", "pool1", 16, "kernel_size: 3 pad: 1");
  norm("norm2", params);
  convolution("side2", "pool1", 16, "kernel_size: 1");
  norm("side_norm2", params);
  net.layer("sum2", "Eltwise", {"norm2", "side_norm2"}, {"sum2"});
  relu("sum2");
  convolution("conv3", "sum2", 8, "kernel_size: 1");
  norm("norm3", "batch_norm_param { " + fraction + " }");
  net.layer("scale3", "Scale");  // without a bias, so that norm3 stays a layer of its own
  relu("scale3");
  convolution("conv4", "scale3", 8, "kernel_size: 3");
  relu("conv4");
  convolution("side3", "sum2", 8, "kernel_size: 1");
  relu("side3");
  net.layer("lrn3", "LRN", "lrn_param { local_size: 3 }");
  convolution("side4", "lrn3", 8, "kernel_size: 3");
  relu("side4");
  net.layer("both4", "Concat", {"conv4", "side4"}, {"both4"});
  convolution("conv5", "both4", 8, "kernel_size: 1");
  dense("fc6", 20);
  relu("fc6");
  net.layer("drop6", "Dropout", "dropout_param { dropout_ratio: 0.3 }");
  dense("score", 3);
  return read_net_text(net.loss().text());
}

class RecomputedRuns : public Runs {
 protected:
  static TrainOptions options(int devices, const std::string& strategy, int64_t steps = 4) {
    TrainOptions o = Runs::options(steps);
    o.net_text = write_net(recomputed_net(strategy != "asymmetric"));
    o.devices = fmt::format("cpu:{}", devices);
    o.machine.threads = devices;
    o.strategy = strategy;
    return o;
  }
  // The end of such a run without it must be that of one with it.
  static void expect_same(TrainOptions o, const std::string& name) {
    SCOPED_TRACE(name);
    const Weights plain = run(o);
    o.recompute = true;
    o.out += "_recomputed";
    const Weights recomputed = run(o);
    EXPECT_THAT(read_text(o.out / "plan.txt"), testing::HasSubstr("recompute "));
    ASSERT_EQ(recomputed.size(), plain.size());
    for (const auto& [array, values] : plain) EXPECT_EQ(recomputed.at(array), values) << array;
  }
};

TEST_F(RecomputedRuns, GivesTheBitsOfARunWithoutWithEveryStrategy) {
  for (const int devices : {1, 2, 3}) {
    for (const Strategy& strategy : built_in_strategies()) {
      const auto cases = strategy.lossless_cases(devices);
      if (cases.empty()) continue;
      TrainOptions o = options(devices, strategy.name);
      o.strategy_options = cases.front();
      expect_same(o, fmt::format("{} on {}", strategy.name, devices));
    }
  }
}

TEST_F(RecomputedRuns, GivesThemOverSeveralBatchesAStep) {
  TrainOptions o = options(2, "layerwise");
  o.batch /= 2;
  o.solver_fields["iter_size"] = "2";
  expect_same(o, "iter_size 2");
}

TEST_F(RecomputedRuns, GivesThemWithFrozenStatisticsAndLayers) {
  TrainOptions first = options(1, "sequential");
  (void)run(first);
  TrainOptions o = options(2, "two_phase");
  o.solver_fields["weights"] = (first.out / "last.safetensors").string();
  o.freeze = {"conv1"};
  o.freeze_batch_norm = true;
  expect_same(o, "frozen");
}

TEST_F(RecomputedRuns, GivesThemInBfloat16) {
  if (const std::string reason = no_bfloat16(); !reason.empty()) GTEST_SKIP() << reason;
  TrainOptions o = options(2, "two_phase");
  o.precision = "bfloat16";
  expect_same(o, "bfloat16");
}

TEST_F(RecomputedRuns, IsKeptByAResumedRunWhichMayEndIt) {
  const Weights whole = run(options(2, "layerwise", 6));
  TrainOptions first = options(2, "layerwise", 2);
  first.recompute = true;
  (void)run(first);
  TrainOptions rest;
  rest.out = first.out;
  rest.resume = true;
  rest.steps = 4;
  (void)run(rest);
  const auto recorded = [&] { return RunFolder::open(first.out).record().options.recompute; };
  EXPECT_EQ(recorded(), true);
  rest.recompute = false;
  rest.steps = 6;
  EXPECT_EQ(run(rest), whole);
  EXPECT_EQ(recorded(), false);
}

// The plan of a step on one device.
struct Planned {
  std::string recomputed;  // "norm1 norm2 "
  int64_t bytes = 0;
  std::string said;
};
Planned planned(const NetDefinition& net, bool recomputes) {
  Registry registry = Registry::with_defaults();
  SessionOptions o;
  o.devices = "cpu:1";
  o.strategy = "sequential";
  o.batch = 12;
  o.data = {1, 3, 32, 32};
  o.testing = false;
  o.recomputes = recomputes;
  Session session(registry, net, o);
  Planned result;
  result.bytes = session.training().memory.transient_bytes[0];
  result.said = session.training().plan.recomputation;
  for (const Task& task : session.training().plan.tasks) {
    if (!repeats(task)) continue;
    result.recomputed += session.net().layer(task.layer).name + " ";
  }
  return result;
}

TEST_F(RecomputedRuns, RunsLayersAgainWhoseInputsAreKept) {
  EXPECT_EQ(planned(recomputed_net(), false).recomputed, "");
  const std::string layers = planned(recomputed_net(), true).recomputed;
  // side_norm2 with sum2 and its ReLU.
  for (const char* layer :
       {"pool0", "norm1", "pool1", "norm2", "side_norm2", "scale3", "lrn3", "both4", "drop6"}) {
    EXPECT_THAT(layers, testing::HasSubstr(layer));
  }
  for (const char* layer : {"conv", "fc6", "norm3"}) {
    EXPECT_THAT(layers, testing::Not(testing::HasSubstr(layer)));
  }
}

TEST_F(RecomputedRuns, RunsNothingAgainWhereThatWouldTakeNoLessMemory) {
  const NetDefinition net = read_net(find_net("cifar10_quick"));
  EXPECT_EQ(planned(net, true).recomputed, "");
  EXPECT_EQ(planned(net, true).bytes, planned(net, false).bytes);
  EXPECT_THAT(planned(net, true).said, testing::HasSubstr("no pass runs again"));
  EXPECT_THAT(planned(recomputed_net(), true).said,
              testing::ContainsRegex("--recompute: [0-9]+ forward passes .* less memory"));
}

TEST_F(RecomputedRuns, TakesLessMemoryByMostOfTheOutputsOfBatchNorms) {
  NetWriter net("deep");
  net.data(20);
  for (int i = 1; i <= 8; ++i) {
    const std::string norm = fmt::format("norm{}", i);
    net.layer(fmt::format("conv{}", i), "Convolution",
              "convolution_param { num_output: 16 kernel_size: 3 pad: 1 bias_term: false }")
        .layer(norm, "BatchNorm", "batch_norm_param { scale_bias: true }")
        .layer(fmt::format("relu{}", i), "ReLU", {norm}, {norm});
  }
  net.layer("score", "InnerProduct", "inner_product_param { num_output: 3 }").loss();
  const NetDefinition deep = read_net_text(net.text());
  constexpr int64_t output = 12 * 16 * 32 * 32 * sizeof(float);
  EXPECT_LT(planned(deep, true).bytes, planned(deep, false).bytes - 5 * output);
}

}  // namespace
}  // namespace tandem::test
