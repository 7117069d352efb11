// Data-parallel strategies on any number of devices against one device, whose threads alone sum in
// other orders: a smaller tolerance than that of strategy_lossless_test.cpp.
#include <gtest/gtest.h>

#include "tests/support/run_support.h"

namespace tandem::test {
namespace {

struct LosslessCase {
  std::string strategy;
  int devices;
  StrategyOptions options{};
};

class Lossless : public Runs, public testing::WithParamInterface<LosslessCase> {
 protected:
  void SetUp() override { Runs::SetUp(); }
  static TrainOptions one_device(int threads, int64_t steps = 20) {
    TrainOptions o = options(steps);
    o.devices = "cpu:1";
    o.strategy = "sequential";
    o.machine.threads = threads;
    return o;
  }
  static TrainOptions many(const LosslessCase& c) {
    TrainOptions o = options();
    o.devices = "cpu:" + std::to_string(c.devices);
    o.strategy = c.strategy;
    o.strategy_options = c.options;
    o.machine.threads = c.devices;
    return o;
  }
  // What gives the tolerance: one device whose threads only sum the batch in other orders.
  struct Reference {
    Weights start, weights;
    double reordered = 0;
  };
  static const Reference& reference() {
    static const Reference result = [] {
      Reference r;
      TrainOptions still = one_device(1, 1);
      still.rate = 0.0;
      r.start = run(still);
      r.weights = run(one_device(1));
      for (const int threads : {2, 3, 4}) {
        r.reordered =
            std::max(r.reordered, max_difference(r.weights, run(one_device(threads)), r.start));
      }
      return r;
    }();
    return result;
  }
};

TEST_P(Lossless, TheWeightsAreThoseOfOneDevice) {
  if (teams_are_one_thread)
    GTEST_SKIP() << "built for ThreadSanitizer: one order of summation only";
  const Reference& one = reference();
  ASSERT_GT(one.reordered, 0)
      << "other orders of summation gave the same bits: nothing to compare with";
  const double difference = max_difference(one.weights, run(many(GetParam())), one.start);
  EXPECT_LE(difference, 10 * one.reordered) << "reordered runs differ by " << one.reordered;
  RecordProperty("difference", std::to_string(difference));
}

TEST_P(Lossless, TheBitsAreTheSameWithRandomStreamDelays) {
  const Weights plain = run(many(GetParam()));
  TrainOptions delayed = many(GetParam());
  delayed.machine.delay_seed = 11;
  delayed.machine.delay_seconds = 0.002;
  EXPECT_EQ(run(delayed), plain);
}

std::vector<LosslessCase> lossless_cases() {
  std::vector<LosslessCase> result;
  for (int devices = 1; devices <= 4; ++devices) {
    result.push_back({"sequential", devices, {{"split", "fc3"}}});
    result.push_back({"two_phase", devices, {{"split", "fc3"}}});
    if (devices > 1) {
      result.push_back({"two_phase", devices, {{"split", "fc3"}, {"hidden_broadcast", false}}});
    }
    for (const char* reduce : {"serial", "tree", "ring"}) {
      // Every layer by itself, and several in one bucket.
      const int64_t bucket = devices % 2 == 0 ? 1 : 4096;
      result.push_back({"layerwise", devices, {{"reduce", reduce}, {"bucket", bucket}}});
    }
  }
  result.push_back({"layerwise", 3, {{"reduce", "ring"}, {"bucket", 1 << 20}}});
  return result;
}

INSTANTIATE_TEST_SUITE_P(Strategies, Lossless, testing::ValuesIn(lossless_cases()),
                         [](const testing::TestParamInfo<LosslessCase>& info) {
                           return fmt::format("{}_{}_{}", info.param.strategy, info.param.devices,
                                              info.index);
                         });

}  // namespace
}  // namespace tandem::test
