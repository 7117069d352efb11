// --recompute changes what a run keeps in memory, and none of its bits: weights and moving averages
// are those of a run without, with every strategy, and in a run that begins it later.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/train/run_folder.h"
#include "core/train/session.h"
#include "include/tandem/net.h"
#include "tests/support/cpu_precision.h"
#include "tests/train/run_support.h"

namespace tandem::test {
namespace {

// A residual block, with all that may be computed again: BatchNorms with fused ReLUs, one apart
// from its Scale, a sum, pooling, a Concat, LRN and dropout of its own memory.
NetDefinition recomputed_net() {
  const std::string filler = "weight_filler { type: \"xavier\" }";
  const auto convolution = [&](int outputs, const std::string& more) {
    return fmt::format("convolution_param {{ num_output: {} {} bias_term: false {} }}", outputs,
                       more, filler);
  };
  const std::string norm = "batch_norm_param { scale_bias: true moving_average_fraction: 0.9 }";
  return read_net_text(
      NetWriter("recomputed")
          .data(20)
          .layer("conv1", "Convolution", convolution(16, "kernel_size: 5 pad: 2"))
          .layer("norm1", "BatchNorm", norm)
          .layer("relu1", "ReLU", {"norm1"}, {"norm1"})
          .layer("pool1", "Pooling", "pooling_param { pool: MAX kernel_size: 3 stride: 2 }")
          .layer("conv2", "Convolution", convolution(16, "kernel_size: 3 pad: 1"))
          .layer("norm2", "BatchNorm", norm)
          .layer("sum", "Eltwise", {"norm2", "pool1"}, {"sum"})
          .layer("relu2", "ReLU", {"sum"}, {"sum"})
          .layer("conv3", "Convolution", {"sum"}, {"conv3"}, convolution(8, "kernel_size: 1"))
          .layer("norm3", "BatchNorm", {"conv3"}, {"norm3"},
                 "batch_norm_param { moving_average_fraction: 0.9 }")
          .layer("scale3", "Scale", {"norm3"}, {"scale3"}, "scale_param { bias_term: true }")
          .layer("relu3", "ReLU", {"scale3"}, {"scale3"})
          .layer("both", "Concat", {"sum", "scale3"}, {"both"})
          .layer("lrn", "LRN", {"both"}, {"lrn"}, "lrn_param { local_size: 3 }")
          .layer("conv4", "Convolution", convolution(8, "kernel_size: 3"))
          .layer("drop4", "Dropout", "dropout_param { dropout_ratio: 0.3 }")
          .layer("fc5", "InnerProduct", "inner_product_param { num_output: 20 " + filler + " }")
          .layer("relu5", "ReLU", {"fc5"}, {"fc5"})
          .layer("score", "InnerProduct", "inner_product_param { num_output: 3 " + filler + " }")
          .loss()
          .text());
}

class Recompute : public Runs {
 protected:
  static TrainOptions options(int devices, const std::string& strategy, int64_t steps = 4) {
    TrainOptions o = Runs::options(steps);
    // Asymmetric refuses statistics of the batch.
    if (strategy != "asymmetric") o.net_text = write_net(recomputed_net());
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
    ASSERT_EQ(recomputed.size(), plain.size());
    for (const auto& [array, values] : plain) EXPECT_EQ(recomputed.at(array), values) << array;
  }
};

TEST_F(Recompute, GivesTheBitsOfARunWithoutWithEveryStrategy) {
  for (const int devices : {1, 2, 4}) {
    for (const Strategy& strategy : built_in_strategies()) {
      const auto cases = strategy.lossless_cases(devices);
      if (cases.empty()) continue;
      TrainOptions o = options(devices, strategy.name);
      o.strategy_options = cases.front();
      expect_same(o, fmt::format("{} on {}", strategy.name, devices));
    }
  }
}

TEST_F(Recompute, GivesThemOverSeveralBatchesAStep) {
  TrainOptions o = options(2, "layerwise");
  o.batch /= 2;
  o.solver_fields["iter_size"] = "2";
  expect_same(o, "iter_size 2");
}

TEST_F(Recompute, GivesThemWithFrozenStatisticsAndLayers) {
  TrainOptions first = options(1, "sequential");
  (void)run(first);
  TrainOptions o = options(2, "two_phase");
  o.solver_fields["weights"] = (first.out / "last.safetensors").string();
  o.freeze = {"conv1"};
  o.freeze_batch_norm = true;
  expect_same(o, "frozen");
}

TEST_F(Recompute, GivesThemInBfloat16) {
  if (const std::string reason = no_bfloat16(); !reason.empty()) GTEST_SKIP() << reason;
  TrainOptions o = options(2, "two_phase");
  o.precision = "bfloat16";
  expect_same(o, "bfloat16");
}

TEST_F(Recompute, IsKeptByAResumedRunWhichMayEndIt) {
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

TEST_F(Recompute, TakesLessMemory) {
  Registry registry = Registry::with_defaults();
  std::vector<int64_t> bytes;
  std::string labels;
  for (const bool recomputes : {false, true}) {
    SessionOptions o;
    o.devices = "cpu:1";
    o.strategy = "sequential";
    o.batch = 12;
    o.data = {1, 3, 20, 20};
    o.testing = false;
    o.recomputes = recomputes;
    Session session(registry, recomputed_net(), o);
    bytes.push_back(session.training().memory.transient_bytes[0]);
    for (const Task& task : session.training().plan.tasks) {
      if (task.label.starts_with("recompute")) labels += task.label + "; ";
    }
  }
  EXPECT_LT(bytes[1], bytes[0] * 8 / 10);
  EXPECT_EQ(labels, "");
}

}  // namespace
}  // namespace tandem::test
