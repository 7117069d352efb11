// docs/design/promises.md, promises 1 and 2: every strategy in each of its ways gives one device's
// weights, and the same bits each time; and the weights and solver state are whole wherever a run
// goes on.
#include <gtest/gtest.h>

#include "tests/support/strategy_runs.h"

namespace tandem::test {
namespace {

class StrategyLossless : public StrategyRuns, public testing::WithParamInterface<StrategyCase> {};

TEST_P(StrategyLossless, TheWeightsAreThoseOfOneDevice) {
  if (teams_are_one_thread)
    GTEST_SKIP() << "built for ThreadSanitizer: one order of summation only";
  const Reference& one = reference(GetParam());
  ASSERT_GT(one.reordered, 0) << "nothing to compare with";
  const double difference = max_difference(one.weights, run(many(GetParam())), one.start);
  EXPECT_LE(difference, 10 * one.reordered) << "reordered runs differ by " << one.reordered;
  RecordProperty("difference", std::to_string(difference));
}

TEST_P(StrategyLossless, TheBitsAreTheSameWithRandomStreamDelays) {
  const Weights plain = run(many(GetParam(), 4));
  TrainOptions delayed = many(GetParam(), 4);
  delayed.machine.delay_seed = 11;
  delayed.machine.delay_seconds = 0.001;
  EXPECT_EQ(run(delayed), plain);
}

INSTANTIATE_TEST_SUITE_P(Strategies, StrategyLossless, testing::ValuesIn(strategy_cases()),
                         [](const auto& info) { return info.param.name(); });

class StrategyResume : public StrategyRuns, public testing::WithParamInterface<StrategyCase> {};

INSTANTIATE_TEST_SUITE_P(Strategies, StrategyResume, testing::ValuesIn(resume_cases()),
                         [](const auto& info) { return info.param.name(); });

TEST_P(StrategyResume, GivesTheBitsOfARunNeverInterrupted) {
  const Weights whole = run(many(GetParam(), 8));
  TrainOptions first = many(GetParam(), 5);
  run(first);
  TrainOptions rest;
  rest.out = first.out;
  rest.resume = true;
  rest.steps = 8;
  EXPECT_EQ(run(rest), whole);
}

TEST_P(StrategyResume, GoesOnWithAnotherStrategyAndComesBack) {
  if (teams_are_one_thread)
    GTEST_SKIP() << "built for ThreadSanitizer: one order of summation only";
  const Reference& one = reference(GetParam());
  TrainOptions first = many(GetParam(), 7);
  run(first);
  TrainOptions other;
  other.out = first.out;
  other.resume = true;
  other.steps = 13;
  other.devices = "cpu:2";
  other.strategy = "sequential";
  run(other);
  TrainOptions back = many(GetParam(), 20);
  TrainOptions rest;
  rest.out = first.out;
  rest.resume = true;
  rest.steps = 20;
  rest.devices = back.devices;
  rest.strategy = back.strategy;
  rest.strategy_options = back.strategy_options;
  const double difference = max_difference(one.weights, run(rest), one.start);
  EXPECT_LE(difference, 10 * one.reordered) << "reordered runs differ by " << one.reordered;
}

// The testing plan sees the weights of all devices.
TEST_P(StrategyResume, EvaluatesAsOneDeviceDoes) {
  class Watch : public Observer {
   public:
    void on_evaluation(const Evaluation& evaluation) override { tests.push_back(evaluation.loss); }
    std::vector<double> tests;
  };
  Watch one, several;
  TrainOptions alone = one_device(GetParam(), 1, 4), together = many(GetParam(), 4);
  alone.test_interval = together.test_interval = 2;
  (void)train(alone, one);
  (void)train(together, several);
  ASSERT_EQ(one.tests.size(), several.tests.size());
  ASSERT_GE(one.tests.size(), 2U);
  for (size_t i = 0; i < one.tests.size(); ++i) EXPECT_NEAR(one.tests[i], several.tests[i], 1e-4);
}

}  // namespace
}  // namespace tandem::test
