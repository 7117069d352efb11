// docs/design/promises.md, promises 1 and 2: any strategy on any number of devices gives one
// device's weights, and the same bits each time.
#include <gtest/gtest.h>

#include "core/schedule/strategies/strategy_options.h"
#include "tests/train/run_support.h"

namespace tandem::test {
namespace {

struct Case {
  std::string strategy;
  int devices;
  bool hidden;
  std::string reduce{};
  int64_t bucket = 0;
};

class Lossless : public Runs, public testing::WithParamInterface<Case> {
 protected:
  void SetUp() override { Runs::SetUp(); }
  static TrainOptions one_device(int threads, int64_t steps = 20) {
    TrainOptions o = options(steps);
    o.devices = "cpu:1";
    o.strategy = "sequential";
    o.machine.threads = threads;
    return o;
  }
  static TrainOptions many(const Case& c) {
    TrainOptions o = options();
    o.devices = "cpu:" + std::to_string(c.devices);
    o.strategy = c.strategy;
    o.strategy_options.hidden_broadcast = c.hidden;
    o.strategy_options.split = "fc3";
    o.strategy_options.reduce = c.reduce;
    o.strategy_options.bucket = c.bucket;
    o.strategy_options = options_of(c.strategy, o.strategy_options);
    o.machine.threads = c.devices;
    return o;
  }
  // The yardstick: one device whose threads only sum the batch in other orders.
  struct Reference {
    Weights start, weights;
    double yardstick = 0;
  };
  static const Reference& reference() {
    static const Reference result = [] {
      Reference r;
      TrainOptions still = one_device(1, 1);
      still.rate = 0.0;
      r.start = run(still);
      r.weights = run(one_device(1));
      for (const int threads : {2, 3, 4}) {
        r.yardstick =
            std::max(r.yardstick, largest_difference(r.weights, run(one_device(threads)), r.start));
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
  ASSERT_GT(one.yardstick, 0)
      << "other orders of summation gave the same bits: nothing to compare with";
  const double difference = largest_difference(one.weights, run(many(GetParam())), one.start);
  EXPECT_LE(difference, 10 * one.yardstick) << "yardstick " << one.yardstick;
  RecordProperty("difference", std::to_string(difference));
}

TEST_P(Lossless, TheBitsAreTheSameWithRandomStreamDelays) {
  const Weights plain = run(many(GetParam()));
  TrainOptions delayed = many(GetParam());
  delayed.machine.delay_seed = 11;
  delayed.machine.delay_seconds = 0.002;
  EXPECT_EQ(run(delayed), plain);
}

std::vector<Case> cases() {
  std::vector<Case> result;
  for (int devices = 1; devices <= 4; ++devices) {
    result.push_back({"sequential", devices, true});
    result.push_back({"two_phase", devices, true});
    if (devices > 1) result.push_back({"two_phase", devices, false});
    for (const char* reduce : {"serial", "tree", "ring"}) {
      // Every layer by itself, and several in one bucket.
      result.push_back({"layerwise", devices, true, reduce, devices % 2 == 0 ? 1 : 4096});
    }
  }
  result.push_back({"layerwise", 3, true, "ring", 1 << 20});
  return result;
}

INSTANTIATE_TEST_SUITE_P(Strategies, Lossless, testing::ValuesIn(cases()),
                         [](const testing::TestParamInfo<Case>& info) {
                           const Case& c = info.param;
                           const std::string with = c.reduce.empty()
                                                        ? (c.hidden ? "hidden" : "plain")
                                                        : fmt::format("{}_{}", c.reduce, c.bucket);
                           return fmt::format("{}_{}_{}", c.strategy, c.devices, with);
                         });

}  // namespace
}  // namespace tandem::test
