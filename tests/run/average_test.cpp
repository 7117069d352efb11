// The moving average of the weights (--ema): what it is, and where it is kept.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/strategy_runs.h"

namespace tandem::test {
namespace {

using testing::HasSubstr;

class WeightAverage : public StrategyRuns {
 protected:
  static TrainOptions averaging(const StrategyCase& c, int64_t steps) {
    TrainOptions o = many(c, steps);
    o.average_decay = 0.3;
    return o;
  }
  static Weights best_of(const TrainOptions& o) {
    (void)run(o);
    return weights_in(o.out / "best.safetensors");
  }
};

// The decay of step t, counted from 1, is at most (1 + t) / (10 + t).
TEST_F(WeightAverage, FollowsTheWeightsOfEveryStepWithEveryStrategy) {
  for (const Strategy& strategy : built_in_strategies()) {
    const StrategyCase c{strategy.name, 2, strategy.lossless_cases(2).front()};
    TrainOptions still = many(c, 1);
    still.rate = 0.0;
    Weights expected = run(still);
    for (int64_t t = 1; t <= 3; ++t) {
      const double keep =
          std::min(0.3, (1.0 + static_cast<double>(t)) / (10.0 + static_cast<double>(t)));
      for (const auto& [name, values] : run(many(c, t))) {
        for (size_t i = 0; i < values.size(); ++i) {
          expected[name][i] = static_cast<float>(keep * expected[name][i] + (1 - keep) * values[i]);
        }
      }
    }
    const Weights best = best_of(averaging(c, 3));
    ASSERT_EQ(best.size(), expected.size());
    for (const auto& [name, values] : expected) {
      for (size_t i = 0; i < values.size(); ++i) {
        ASSERT_NEAR(best.at(name)[i], values[i], 1e-6) << strategy.name << " " << name;
      }
    }
  }
}

TEST_F(WeightAverage, LeavesTheTrainedWeightsAlone) {
  const StrategyCase c{"two_phase", 2};
  TrainOptions plain = many(c, 4), averaged = averaging(c, 4);
  plain.test_interval = averaged.test_interval = 2;
  EXPECT_EQ(run(averaged), run(plain));
}

TEST_F(WeightAverage, OfAResumedRunHasTheSameBits) {
  for (const char* strategy : {"two_phase", "hybrid"}) {
    const StrategyCase c{strategy, 2, built_in_strategies().at(strategy).lossless_cases(2).front()};
    const TrainOptions whole = averaging(c, 6), first = averaging(c, 3);
    (void)run(whole);
    (void)run(first);
    TrainOptions rest;
    rest.out = first.out;
    rest.resume = true;
    rest.steps = 6;
    (void)run(rest);
    const Weights states = weights_in(rest.out / "last.state.safetensors");
    EXPECT_TRUE(states.contains("conv1.weight.state1")) << "momentum and the average";
    EXPECT_EQ(states, weights_in(whole.out / "last.state.safetensors")) << strategy;
  }
}

TEST_F(WeightAverage, IsWhatIsValidated) {
  class Watch : public Observer {
   public:
    void on_evaluation(const Evaluation& evaluation) override { loss = evaluation.loss; }
    double loss = 0;
  };
  Watch of_average, again;
  TrainOptions o = averaging({"two_phase", 2}, 4);
  (void)train(o, of_average);
  TrainOptions still = many({"two_phase", 2}, 1);
  still.rate = 0.0;
  still.solver_fields["weights"] = (o.out / "best.safetensors").string();
  (void)train(still, again);
  EXPECT_NEAR(again.loss, of_average.loss, 1e-5);
}

TEST_F(WeightAverage, NeedsADecayBelowOneAndValidationImages) {
  TrainOptions o = many({"two_phase", 2}, 1);
  o.average_decay = 1;
  EXPECT_THAT(failure_of(o), HasSubstr("--ema 1: a decay above 0 and below 1"));
  TrainOptions blind = many({"two_phase", 2}, 1);
  blind.data = (folder_->path() / "data" / "train").string();
  blind.data_parameters["val_fraction"] = "0";
  blind.average_decay = 0.9;
  EXPECT_THAT(failure_of(blind), HasSubstr("nothing is validated"));
}

}  // namespace
}  // namespace tandem::test
