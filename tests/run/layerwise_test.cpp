// Runs of layerwise: where a ring's owners keep the solver's state, a checkpoint has all of it, and
// a run goes on from it on the same devices bit for bit, elsewhere with the weights of one device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/run_support.h"

namespace tandem::test {
namespace {

class LayerwiseRuns : public Runs {
 protected:
  // Adam keeps two arrays.
  static TrainOptions with(const std::string& strategy, int devices, const std::string& reduce,
                           int64_t steps) {
    TrainOptions o = options(steps);
    o.solver_fields = {{"type", "Adam"}};
    o.rate = 0.001;
    o.strategy = strategy;
    o.devices = "cpu:" + std::to_string(devices);
    o.machine.threads = devices;
    if (strategy == "layerwise") {
      o.strategy_options["reduce"] = reduce;
      o.strategy_options["bucket"] = 4096;
    }
    return o;
  }
  static TrainOptions rest_of(const TrainOptions& first, int64_t steps) {
    TrainOptions o;
    o.out = first.out;
    o.resume = true;
    o.steps = steps;
    return o;
  }
};

TEST_F(LayerwiseRuns, ContinueBitForBitWhereverTheStateIs) {
  for (const char* reduce : {"serial", "tree", "ring"}) {
    const Weights whole = run(with("layerwise", 3, reduce, 10));
    const TrainOptions first = with("layerwise", 3, reduce, 5);
    (void)run(first);
    EXPECT_EQ(run(rest_of(first, 10)), whole) << reduce;
  }
}

TEST_F(LayerwiseRuns, SaveTheStateOfEveryWeight) {
  const TrainOptions master = with("two_phase", 3, "", 3), ring = with("layerwise", 3, "ring", 3);
  (void)run(master);
  (void)run(ring);
  const Weights one = weights_in(master.out / "last.state.safetensors");
  const Weights other = weights_in(ring.out / "last.state.safetensors");
  ASSERT_EQ(one.size(), other.size());
  for (const auto& [name, values] : one) {
    double largest = 0, difference = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      largest = std::max<double>(largest, std::abs(values[i]));
      difference = std::max<double>(difference, std::abs(values[i] - other.at(name)[i]));
    }
    EXPECT_GT(largest, 0) << name;
    EXPECT_LE(difference, 1e-3 * largest) << name;
  }
}

TEST_F(LayerwiseRuns, ContinueWithAnotherStrategyOnOtherDevices) {
  const TrainOptions still = [] {
    TrainOptions o = with("sequential", 1, "", 1);
    o.rate = 0.0;
    return o;
  }();
  const Weights start = run(still), whole = run(with("sequential", 1, "", 10));
  for (const bool to_ring : {false, true}) {
    const TrainOptions first =
        to_ring ? with("two_phase", 2, "", 5) : with("layerwise", 4, "ring", 5);
    (void)run(first);
    TrainOptions rest = rest_of(first, 10);
    rest.strategy = to_ring ? "layerwise" : "two_phase";
    rest.devices = to_ring ? "cpu:4" : "cpu:2";
    if (to_ring) rest.strategy_options["reduce"] = "ring";
    // Adam divides by what is nearly zero at the start: differences of summation are seen larger.
    EXPECT_LE(max_difference(whole, run(rest), start), 0.02) << (to_ring ? "to" : "from");
  }
}

TEST_F(LayerwiseRuns, AnUnknownReductionIsNamedWithTheKnownOnes) {
  std::string message;
  try {
    (void)run(with("layerwise", 2, "rings", 1));
  } catch (const Error& error) {
    message = error.what();
  }
  EXPECT_THAT(message,
              testing::HasSubstr(
                  "--reduce rings: unknown value; there are: serial, tree, ring (did you mean "
                  "'ring'?)"));
}

}  // namespace
}  // namespace tandem::test
