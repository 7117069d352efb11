// The trial trainings of --find-lr: what they are, and what ends them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/run/rate_curve.h"
#include "include/tandem/train.h"
#include "tests/support/message_of.h"
#include "tests/support/run_support.h"

namespace tandem::test {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::Not;

class FindRate : public Runs {
 protected:
  static RateCurve found(const TrainOptions& o) {
    Observer quiet;
    return find_rate(o, quiet);
  }
  static TrainOptions adaptive(int64_t steps) {
    TrainOptions o = options(steps);
    o.solver_fields = {
        {"lr_policy", "cosine"}, {"max_iter", "1"}, {"warmup_iter", "8"}, {"momentum", "0.9"}};
    return o;
  }
};

// Messages, and a wish to stop at a step of all.
class Watcher : public Observer {
 public:
  explicit Watcher(int64_t stops_at = 0) : stops_at_(stops_at) {}
  void on_message(const std::string& line) override { text += line + "\n"; }
  void on_step(const StepReport& report) override {
    rates.push_back(report.rate);
    if (++steps == stops_at_) stop = true;
  }
  std::string text;
  std::vector<double> rates;
  int64_t steps = 0;
  std::atomic<bool> stop = false;

 private:
  int64_t stops_at_;
};

TEST_F(FindRate, TheSuggestionIsTheRateOfTheTrialWithTheBestScoreAndLearns) {
  TrainOptions o = adaptive(60);
  const RateCurve curve = found(o);
  ASSERT_TRUE(curve.is_validated);
  ASSERT_TRUE(curve.is_scored);
  for (const RateCurve::Trial& trial : curve.trials) {
    EXPECT_EQ(trial.steps, 60);
    if (trial.rate == curve.suggestion) continue;
    const auto best = std::find_if(curve.trials.begin(), curve.trials.end(),
                                   [&](const auto& t) { return t.rate == curve.suggestion; });
    // Within the standard error of a difference of shares, which is largest at a half.
    EXPECT_LE(trial.score, best->score + std::sqrt(0.5 / double(best->samples))) << trial.rate;
  }
  o.rate = curve.suggestion;
  o.test_interval = 60;
  o.out += "-with-it";
  Observer quiet;
  EXPECT_GE(train(o, quiet).last.top1, 0.9);
}

TEST_F(FindRate, ATrialAsLongAsTheRunIsThatRun) {
  TrainOptions o = adaptive(60);
  const RateCurve curve = found(o);
  Observer quiet;
  for (const RateCurve::Trial& trial : curve.trials) {
    if (!std::isfinite(trial.loss)) continue;
    o.rate = trial.rate;
    o.out = folder_->path() / ("same" + std::to_string(int64_t(1e9 * trial.rate)));
    EXPECT_EQ(train(o, quiet).last.loss, trial.loss) << trial.rate;
  }
}

TEST_F(FindRate, TheSameSeedSuggestsTheSame) {
  const RateCurve one = found(adaptive(30)), other = found(adaptive(30));
  ASSERT_EQ(one.trials.size(), other.trials.size());
  for (size_t i = 0; i < one.trials.size(); ++i) {
    EXPECT_EQ(one.trials[i].rate, other.trials[i].rate);
    EXPECT_EQ(one.trials[i].loss, other.trials[i].loss);
  }
  EXPECT_EQ(one.suggestion, other.suggestion);
}

TEST_F(FindRate, ATrialThatDivergesIsABadRateAndNoError) {
  TrainOptions o = options(60);
  o.solver_fields = {{"momentum", "0.9"}, {"weight_decay", "0.5"}};
  const RateCurve curve = found(o);
  EXPECT_FALSE(std::isfinite(curve.trials.front().loss));
  const RateCurve::Trial best = best_of(curve.trials, 1).front();
  EXPECT_TRUE(std::isfinite(best.loss));
  EXPECT_EQ(curve.suggestion, best.rate);
}

TEST_F(FindRate, OfALongRunTheBestThreeTrialsGoOnLonger) {
  TrainOptions o = adaptive(200);
  Watcher watcher;
  const RateCurve curve = find_rate(o, watcher);
  const auto longer = std::count_if(curve.trials.begin(), curve.trials.end(),
                                    [](const auto& trial) { return trial.steps == 200; });
  EXPECT_EQ(longer, 3);
  EXPECT_EQ(curve.trials.back().steps, 200);
  EXPECT_THAT(watcher.text, HasSubstr("at most 1500 steps in all (the run itself has 200)"));
  EXPECT_LE(watcher.steps, 1500);
}

TEST_F(FindRate, WarmUpAndScheduleAreFittedToATrial) {
  Watcher watcher;
  const RateCurve curve = find_rate(adaptive(200), watcher);
  ASSERT_GT(curve.trials.size(), 3U);
  const RateCurve::Trial& trial = curve.trials[curve.trials.size() - 4];
  ASSERT_EQ(trial.steps, 100);  // the last short one, of a low rate; three of 200 follow
  const double rate = trial.rate, *first = &watcher.rates[watcher.rates.size() - 700];
  EXPECT_NEAR(first[2], rate / 2, 1e-6 * rate) << "4 steps of warm-up, of 8 of the run";
  EXPECT_NEAR(first[50], rate / 2, 1e-6 * rate) << "half of the cosine";
  EXPECT_LT(first[99], 0.001 * rate);
}

TEST_F(FindRate, WithoutValidationImagesTheTrainingLossDecides) {
  TrainOptions o = adaptive(30);
  o.data = (folder_->path() / "data/train").string();
  o.data_parameters["val_fraction"] = "0";
  const RateCurve curve = found(o);
  EXPECT_FALSE(curve.is_validated);
  EXPECT_GT(curve.suggestion, 0);
}

TEST_F(FindRate, WhatLearnsNothingIsRefused) {
  TrainOptions o = adaptive(4);
  EXPECT_THAT(message_of([&] { (void)found(o); }),
              AllOf(HasSubstr("nothing can be suggested"), HasSubstr("a larger --batch")));
  EXPECT_FALSE(std::filesystem::exists(o.out));
}

TEST_F(FindRate, SeveralRanksAndOptionsOfTheTrialOfPluginsAreRefused) {
  TrainOptions o = adaptive(4);
  o.ranks = 2;
  EXPECT_THAT(message_of([&] { (void)found(o); }), HasSubstr("one process"));
  o.ranks = 0;
  o.plugin_check_without = {"phases"};
  EXPECT_THAT(message_of([&] { (void)found(o); }), HasSubstr("--plugin-check-without"));
}

TEST_F(FindRate, AStopInATrialWritesNothing) {
  TrainOptions o = adaptive(30);
  Watcher watcher(120);
  o.stop = &watcher.stop;
  EXPECT_THAT(message_of([&] { (void)find_rate(o, watcher); }),
              AllOf(HasSubstr("of 30 steps of trial "), HasSubstr("nothing is written")));
  EXPECT_FALSE(std::filesystem::exists(o.out));
}

}  // namespace
}  // namespace tandem::test
