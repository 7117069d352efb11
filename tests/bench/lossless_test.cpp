// check_lossless has a verdict only if something ran; it compares with runs that only sum in
// another order; and the rounding of weights is no difference.
#include "bench/lossless_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/lossless_tally.h"
#include "bench/lossless_tolerance.h"
#include "core/base/error.h"
#include "core/model/file/definition.h"
#include "include/tandem/net.h"
#include "tests/cli/program.h"

namespace tandem::bench {
namespace {

using test::Desk;
using test::Outcome;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

LosslessRun run_of(const std::string& devices, const std::string& strategy) {
  LosslessRun run;
  run.devices = devices;
  run.strategy = strategy;
  run.batch = 4;
  run.steps = 2;
  return run;
}

TEST(LosslessTally, AgreesOnlyIfSomethingWasCompared) {
  EXPECT_EQ((LosslessTally{1, 0, 0, 0, 0}.exit_code()), good);
  EXPECT_EQ((LosslessTally{0, 1, 0, 0, 0}.exit_code()), good);
  EXPECT_EQ((LosslessTally{1, 0, 0, 1, 0}.exit_code()), good);
  EXPECT_EQ((LosslessTally{0, 0, 0, 0, 0}.exit_code()), no_verdict);
  EXPECT_EQ((LosslessTally{0, 0, 0, 5, 0}.exit_code()), no_verdict);
}

TEST(LosslessTally, IsBadIfOneDiffersOrFails) {
  EXPECT_EQ((LosslessTally{2, 1, 1, 0, 0}.exit_code()), bad);
  EXPECT_EQ((LosslessTally{2, 1, 0, 1, 1}.exit_code()), bad);
  EXPECT_EQ((LosslessTally{0, 0, 0, 0, 1}.exit_code()), bad);
}

TEST(LosslessRuns, RefuseAStrategyThatTheDevicesDoNotAllow) {
  Registry registry = Registry::with_defaults();
  const Desk desk;
  const NetDefinition net = read_net(desk / "tiny.prototxt");
  EXPECT_THROW((void)run_lossless(registry, net, run_of("cpu:1", "hybrid")), Refused);
}

// Labels of as many classes as the last loss has are too many for the first.
TEST(LosslessRuns, FailIfAKernelFails) {
  Registry registry = Registry::with_defaults();
  const std::string field = "inner_product_param { num_output: ";
  const NetDefinition net =
      read_net_text(NetWriter("two")
                        .data(4)
                        .layer("few", "InnerProduct", {"data"}, {"few"}, field + "2 }")
                        .layer("loss1", "SoftmaxWithLoss", {"few", "label"}, {"loss1"})
                        .layer("many", "InnerProduct", {"data"}, {"many"}, field + "4 }")
                        .loss()
                        .text());
  EXPECT_THROW((void)run_lossless(registry, net, run_of("cpu:1", "sequential")), Error);
}

NetDefinition dropping_net() {
  const std::string field = "inner_product_param { num_output: ";
  return read_net_text(NetWriter("dropping")
                           .data(4)
                           .layer("hidden", "InnerProduct", {"data"}, {"hidden"},
                                  field + "32 weight_filler { type: \"xavier\" } }")
                           .layer("drop", "Dropout", {"hidden"}, {"drop"})
                           .layer("score", "InnerProduct", {"drop"}, {"score"},
                                  field + "4 weight_filler { type: \"xavier\" } }")
                           .loss()
                           .text());
}

TEST(LosslessRuns, OfABatchInPartsGiveTheWeightsOfTheWhole) {
  Registry registry = Registry::with_defaults();
  LosslessRun run = run_of("cpu:1", "sequential");
  const LosslessWeights whole = run_lossless(registry, dropping_net(), run);
  run.parts = 2;
  const LosslessWeights halves = run_lossless(registry, dropping_net(), run);
  EXPECT_TRUE(whole.draws_random_numbers);
  EXPECT_LT(difference(whole, halves).most, 1e-4);
  run.reversed = true;  // other rows are dropped, which must be seen
  EXPECT_GT(difference(whole, run_lossless(registry, dropping_net(), run)).most, 1e-2);
}

TEST(LosslessRuns, RefuseABatchThatIsNotEqualParts) {
  Registry registry = Registry::with_defaults();
  LosslessRun run = run_of("cpu:1", "sequential");
  run.parts = 3;
  EXPECT_THROW((void)run_lossless(registry, dropping_net(), run), Refused);
}

TEST(LosslessRuns, KnowWhetherPartsAddUpToTheBatch) {
  Registry registry = Registry::with_defaults();
  const LosslessRun run = run_of("cpu:1", "sequential");
  const auto adds_up = [&](NetWriter net) {
    return run_lossless(registry, read_net_text(net.text()), run).adds_up_samples;
  };
  const auto score = [](const char* name) {
    NetWriter net(name);
    net.data(4).layer("score", "InnerProduct", {"data"}, {"score"},
                      "inner_product_param { num_output: 4 }");
    return net;
  };
  const auto loss = [](NetWriter net, const char* field) {
    return net.layer("loss", "SoftmaxWithLoss", {"score", "label"}, {"loss"}, field);
  };
  EXPECT_TRUE(adds_up(loss(score("plain"), "")));
  EXPECT_TRUE(adds_up(loss(score("counting"), "loss_param { ignore_label: 9 }")));
  EXPECT_FALSE(adds_up(loss(score("leaving"), "loss_param { ignore_label: 0 }")));
  EXPECT_FALSE(adds_up(loss(score("sum"), "loss_param { normalization: NONE }")));
  EXPECT_FALSE(
      adds_up(loss(score("statistics").layer("norm", "BatchNorm", {"score"}, {"score"}, ""), "")));
}

LosslessWeights weights_of(std::vector<float> start, std::vector<float> end,
                           std::vector<float> momentum) {
  LosslessWeights weights;
  WeightArray array;
  array.name = "fc.bias";
  array.count = static_cast<int64_t>(start.size());
  weights.arrays = {array};
  weights.start = std::move(start);
  weights.end = std::move(end);
  weights.momentum = std::move(momentum);
  weights.steps = 2;
  return weights;
}

constexpr float of_tenth = 7.450580596923828e-9F;  // an ulp of 0.1

TEST(LosslessDifferences, DoNotCountOneRoundingOfAWeightEachStep) {
  const LosslessWeights one =
      weights_of({0.1F, 0.1F}, {0.1F + 50 * of_tenth, 0.1F}, {1e-7F, 1e-8F});
  LosslessWeights other = one;
  other.end[1] += 2 * of_tenth;
  EXPECT_EQ(difference(one, other).most, 0);
  EXPECT_EQ(difference(one, other).where, "");
  other.end[1] += 3 * of_tenth;
  EXPECT_NEAR(difference(one, other).most, 3.0 / 50, 1e-6);
  EXPECT_EQ(difference(one, other).where, "fc.bias");
}

TEST(LosslessDifferences, OfMomentumAreRelativeToTheLargestValue) {
  const LosslessWeights one = weights_of({1, 1}, {1, 1}, {2e-9F, -4e-9F});
  LosslessWeights other = one;
  other.momentum[0] = 2.004e-9F;
  EXPECT_NEAR(difference(one, other).most, 1e-3, 1e-6);
  EXPECT_EQ(difference(one, other).where, "momentum of fc.bias");
}

TEST(LosslessDifferences, AreInfiniteIfAValueIsNotFinite) {
  const LosslessWeights one = weights_of({1}, {2}, {1});
  LosslessWeights other = one;
  other.end[0] = NAN;
  EXPECT_EQ(difference(one, other).most, INFINITY);
  other = one;
  other.momentum[0] = INFINITY;
  EXPECT_EQ(difference(one, other).most, INFINITY);
}

std::vector<std::string> names_of(const LosslessWeights& reference, int64_t batch,
                                  const std::vector<int>& devices) {
  LosslessRun run;
  run.batch = batch;
  std::vector<std::string> names;
  for (const ReorderedRun& other : reordered_runs(run, reference, devices))
    names.push_back(other.name);
  return names;
}

TEST(LosslessTolerance, UsesTheRunsThatNetAndBatchAllow) {
  LosslessWeights reference;
  EXPECT_THAT(names_of(reference, 12, {1, 3}),
              ElementsAre("2 threads", "3 threads", "4 threads", "in 2 parts", "in 3 parts",
                          "rows reversed"));
  EXPECT_THAT(names_of(reference, 8, {3, 4}),
              ElementsAre("2 threads", "3 threads", "4 threads", "in 2 parts", "in 4 parts",
                          "rows reversed"));
  reference.draws_random_numbers = true;
  reference.adds_up_samples = false;
  EXPECT_THAT(names_of(reference, 8, {2}), ElementsAre("2 threads", "3 threads", "4 threads"));
}

TEST(LosslessTolerance, GivesNoVerdictIfItIsZeroOrTooLarge) {
  EXPECT_FALSE(gives_verdict(0));
  EXPECT_TRUE(gives_verdict(1e-6));
  EXPECT_FALSE(gives_verdict(0.1));
  EXPECT_FALSE(gives_verdict(INFINITY));
}

TEST(LosslessTolerance, FindsTheNearestRun) {
  const LosslessWeights weights = weights_of({0, 0}, {1, 2}, {1, 2});
  LosslessWeights near = weights, far = weights;
  near.momentum[0] += 0.1F;
  far.momentum[0] += 0.5F;
  OneDeviceRuns runs;
  runs.add("far", far);
  EXPECT_EQ(runs.nearest(weights, {"reference", 1}).first, "far");
  EXPECT_EQ(runs.nearest(weights, {"reference", 0.1}).first, "reference");
  runs.add("near", near);
  EXPECT_EQ(runs.nearest(weights, {"reference", 1}).first, "near");
  EXPECT_NEAR(runs.nearest(weights, {"reference", 1}).second, 0.05, 1e-6);
}

TEST(CheckLossless, ShowsEachOneDeviceRunThatItComparesWith) {
  const Desk desk;
  const Outcome outcome = desk.run(
      "check_lossless", "--net tiny.prototxt --batch 6 --devices 3 --steps 5 --strategy two_phase");
  EXPECT_EQ(outcome.code, good) << outcome.output << outcome.errors;
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("| 2 threads |"), HasSubstr("| in 2 parts |"),
                                    HasSubstr("| in 3 parts |"), HasSubstr("allowed: "),
                                    HasSubstr("nearest one-device run")));
}

TEST(CheckLossless, GivesNoVerdictIfNothingCouldRun) {
  const Desk desk;
  const Outcome outcome = desk.run(
      "check_lossless", "--net tiny.prototxt --batch 8 --devices 1 --steps 20 --strategy hybrid");
  EXPECT_EQ(outcome.code, no_verdict) << outcome.output << outcome.errors;
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("0 ran"), HasSubstr("1 refused"),
                                    HasSubstr("no verdict: nothing was compared")));
}

TEST(CheckLossless, ContinuesWithItsResultsFile) {
  const Desk desk;
  for (const char* counted : {"1 ran", "0 ran"}) {
    const Outcome outcome =
        desk.run("check_lossless",
                 "--net tiny.prototxt --batch 8 --devices 2 --steps 20 --strategy sequential "
                 "--results results.txt");
    EXPECT_EQ(outcome.code, good) << outcome.output << outcome.errors;
    EXPECT_THAT(outcome.output, HasSubstr(counted));
  }
}

}  // namespace
}  // namespace tandem::bench
