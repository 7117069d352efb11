// The promises of docs/design/promises.md for runs whose activations are bfloat16: any strategy
// gives one device's weights, the same bits each time, and a resumed run those of one never
// interrupted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/run/folder/run_folder.h"
#include "include/tandem/net.h"
#include "tests/support/cpu_precision.h"
#include "tests/support/run_support.h"

namespace tandem::test {
namespace {

using testing::HasSubstr;

class Bfloat16Runs : public Runs {
 protected:
  void SetUp() override {
    Runs::SetUp();
    if (IsSkipped()) return;
    const std::string reason = no_bfloat16();
    if (!reason.empty()) GTEST_SKIP() << reason;
  }
  static TrainOptions half(const std::string& devices, const std::string& strategy,
                           int64_t steps = 20) {
    TrainOptions o = options(steps);
    o.precision = "bfloat16";
    o.devices = devices;
    o.strategy = strategy;
    if (strategy == "sequential" || strategy == "two_phase") o.strategy_options["split"] = "fc3";
    o.machine.threads = static_cast<int>(devices.back() - '0');
    return o;
  }
  static TrainOptions one_device(int threads) {
    TrainOptions o = half("cpu:1", "sequential");
    o.machine.threads = threads;
    return o;
  }
};

// What is refused on every CPU.
class Bfloat16Refusals : public Bfloat16Runs {
 protected:
  void SetUp() override { Runs::SetUp(); }
};

// As in lossless_test.cpp, one device whose threads sum the batch in other orders. A
// sum that falls on the other side of a rounding is part of it.
TEST_F(Bfloat16Runs, EveryStrategyGivesTheWeightsOfOneDevice) {
  if (teams_are_one_thread)
    GTEST_SKIP() << "built for ThreadSanitizer: one order of summation only";
  TrainOptions still = one_device(1);
  still.rate = 0.0;
  still.steps = 1;
  const Weights start = run(still), weights = run(one_device(1));
  double reordered = 0;
  for (const int threads : {2, 3, 4}) {
    reordered = std::max(reordered, max_difference(weights, run(one_device(threads)), start));
  }
  ASSERT_GT(reordered, 0);
  for (const auto& [devices, strategy] : {std::pair{"cpu:2", "sequential"},
                                          {"cpu:2", "two_phase"},
                                          {"cpu:3", "two_phase"},
                                          {"cpu:3", "layerwise"},
                                          {"cpu:2", "hybrid"},
                                          {"cpu:2", "asymmetric"}}) {
    const double difference = max_difference(weights, run(half(devices, strategy)), start);
    EXPECT_LE(difference, 10 * reordered) << strategy << ", reordered runs differ by " << reordered;
  }
}

TEST_F(Bfloat16Runs, GiveTheSameBitsWithRandomStreamDelays) {
  const Weights plain = run(half("cpu:2", "two_phase"));
  TrainOptions delayed = half("cpu:2", "two_phase");
  delayed.machine.delay_seed = 11;
  delayed.machine.delay_seconds = 0.002;
  EXPECT_EQ(run(delayed), plain);
}

TEST_F(Bfloat16Runs, ResumedGiveTheBitsOfAnUninterruptedRun) {
  const Weights whole = run(half("cpu:2", "two_phase"));
  const TrainOptions first = half("cpu:2", "two_phase", 8);
  (void)run(first);
  TrainOptions rest;
  rest.out = first.out;
  rest.resume = true;
  rest.steps = 20;
  EXPECT_EQ(run(rest), whole);
}

// Checkpoints are float32: what follows is as if it had been float32 all along.
TEST_F(Bfloat16Runs, ResumedInAnotherPrecisionKeepIt) {
  const auto go_on = [](const TrainOptions& first, int64_t steps, const std::string& precision) {
    TrainOptions rest;
    rest.out = first.out;
    rest.resume = true;
    rest.steps = steps;
    rest.precision = precision;
    return run(rest);
  };
  const TrainOptions a = half("cpu:1", "sequential", 2), b = half("cpu:1", "sequential", 2);
  (void)run(a);
  (void)run(b);
  EXPECT_NE(go_on(a, 4, "float32"), go_on(b, 4, ""));
  EXPECT_EQ(RunFolder::open(a.out).record().options.precision, "float32");
  EXPECT_EQ(RunFolder::open(b.out).record().options.precision, "bfloat16");
}

TEST_F(Bfloat16Runs, AreOtherBitsThanFloat32AndNearThem) {
  TrainOptions whole = one_device(1), still = one_device(1);
  whole.precision = "float32";
  still.rate = 0.0;
  still.steps = 1;
  const Weights a = run(whole), b = run(one_device(1));
  EXPECT_NE(a, b);
  EXPECT_LT(max_difference(a, b, run(still)), 0.5);
}

// A layer that knows float32 only works between conversions, which lose nothing of what was
// bfloat16 before: with one that changes no value the weights stay the same, bit for bit.
TEST_F(Bfloat16Runs, AFloat32LayerThatChangesNothingChangesNoBit) {
  TrainOptions with = one_device(1);
  NetDefinition net = small_net();
  const auto at = std::find_if(net.layers.begin(), net.layers.end(),
                               [](const LayerDefinition& layer) { return layer.name == "score"; });
  const NetDefinition power = read_net_text(
      NetWriter("power").data(20).layer("same", "Power", {"fc3"}, {"fc3"}, "").text());
  net.layers.insert(at, power.layers.back());
  with.net_text = write_net(net);
  EXPECT_EQ(run(with), run(one_device(1)));
}

TEST_F(Bfloat16Refusals, OfFcParallelNameTheAlternative) {
  EXPECT_THAT(failure_of(half("cpu:2", "fc_parallel")),
              testing::AllOf(HasSubstr("layer 'score' (InnerProduct)"),
                             HasSubstr("use --precision float32 or another strategy")));
}

TEST_F(Bfloat16Refusals, OfAnUnknownPrecisionNameTheKnownOnes) {
  TrainOptions o = one_device(1);
  o.precision = "half";
  EXPECT_THAT(failure_of(o),
              HasSubstr("precision 'half': there are float32, tf32, bfloat16 and float16"));
}

}  // namespace
}  // namespace tandem::test
