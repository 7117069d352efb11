// DESIGN §6.1 and §6.2: any strategy on any number of devices gives one device's weights, and the
// same bits each time.
#include <gtest/gtest.h>

#include "tests/train/run_support.h"

namespace tandem::test {
namespace {

struct Case {
  std::string strategy;
  int devices;
  bool hidden;
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

INSTANTIATE_TEST_SUITE_P(Strategies, Lossless,
                         testing::Values(Case{"sequential", 1, true}, Case{"sequential", 2, true},
                                         Case{"sequential", 3, true}, Case{"sequential", 4, true},
                                         Case{"two_phase", 1, true}, Case{"two_phase", 2, true},
                                         Case{"two_phase", 2, false}, Case{"two_phase", 3, true},
                                         Case{"two_phase", 3, false}, Case{"two_phase", 4, true},
                                         Case{"two_phase", 4, false}),
                         [](const testing::TestParamInfo<Case>& info) {
                           return info.param.strategy + "_" + std::to_string(info.param.devices) +
                                  (info.param.hidden ? "_hidden" : "_plain");
                         });

}  // namespace
}  // namespace tandem::test
