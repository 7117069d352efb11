// The curve and the trials of --find-lr.
#include "core/run/rate_curve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/support/message_of.h"

namespace tandem {
namespace {

using testing::AllOf;
using testing::DoubleNear;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::Pointwise;
using testing::StartsWith;

// The loss falls until the rate is 0.1, then rises.
RateCurve valley() {
  RateCurve curve;
  for (int i = 0; i <= 30; ++i) {
    const double decade = -4 + i / 10.0;
    add_point(curve, std::pow(10, decade), i <= 29 ? 3 - 0.1 * i : 50);
  }
  return curve;
}

TEST(RateCurve, SmoothsAsAMeanOfTheLossesBefore) {
  RateCurve curve;
  for (const double loss : {4.0, 4.0, 4.0}) add_point(curve, 1, loss);
  EXPECT_NEAR(curve.points.back().smoothed, 4, 1e-12) << "no bias towards zero";
  add_point(curve, 1, 5);
  EXPECT_GT(curve.points.back().smoothed, 4);
  EXPECT_LT(curve.points.back().smoothed, 5);
}

TEST(RateCurve, ALossFarAboveTheLowestEndsTheSearch) {
  RateCurve curve = valley();
  EXPECT_TRUE(rises_far(curve));
  curve.points.pop_back();
  EXPECT_FALSE(rises_far(curve));
}

TEST(RateCurve, ALossThatRisesWithoutEverHavingFallenEndsTheSearch) {
  RateCurve curve;
  for (int i = 0; i < 30; ++i) add_point(curve, std::pow(10, -4 + i / 10.0), 2.3);
  EXPECT_FALSE(rises_far(curve));
  for (int i = 0; i < 12; ++i) add_point(curve, 1, 4);
  EXPECT_TRUE(rises_far(curve));
}

TEST(RateCurve, LossesThatVaryBySeveralTimesFromTheFirstOnDoNotEndTheSearch) {
  RateCurve curve;  // as of trained weights
  for (int i = 0; i < 20; ++i) add_point(curve, 1e-5, i % 7 == 6 ? 0.9 : 0.02);
  for (int i = 0; i < 3; ++i) add_point(curve, 1e-4, 0.6);
  EXPECT_FALSE(rises_far(curve));
  for (int i = 0; i < 12; ++i) add_point(curve, 1, 4);
  EXPECT_TRUE(rises_far(curve));
}

TEST(RateCurve, TheFirstTrialsBeginWhereItEndsAndAreThreeTimesApart) {
  RateCurve curve = valley();  // ends at 0.1
  EXPECT_THAT(trial_rates(curve),
              Pointwise(DoubleNear(1e-9), {0.1, 0.03, 0.01, 0.003, 1e-3, 3e-4}));
  add_point(curve, 0.25, 50);
  EXPECT_NEAR(trial_rates(curve).front(), 0.1, 1e-9);
  add_point(curve, 3.1, 50);
  EXPECT_NEAR(trial_rates(curve).front(), 3, 1e-9);
}

TEST(RateCurve, OfTooFewPointsIsRefused) {
  RateCurve curve;
  add_point(curve, 1e-6, 2);
  EXPECT_THAT(test::message_of([&] { (void)trial_rates(curve); }),
              HasSubstr("not finite after 1 steps"));
}

constexpr double infinite = std::numeric_limits<double>::infinity();

TEST(RateTrials, ABestOneAtAnEndAsksForARateBeyond) {
  EXPECT_NEAR(rate_beyond({{0.3, 9, 1}, {0.1, 9, 2}, {0.03, 9, 3}}), 1, 1e-9);
  EXPECT_NEAR(rate_beyond({{0.3, 9, infinite}, {0.1, 9, 2}, {0.03, 9, 1}}), 0.01, 1e-9);
  EXPECT_EQ(rate_beyond({{0.3, 9, 3}, {0.1, 9, 1}, {0.03, 9, 2}}), 0);
}

TEST(RateTrials, WhereAllDivergeLowerRatesAreTriedUntilThereAreEight) {
  std::vector<RateCurve::Trial> trials{{0.3, 9, infinite}, {0.1, 9, infinite}};
  EXPECT_NEAR(rate_beyond(trials), 0.03, 1e-9);
  while (trials.size() < max_rates) trials.push_back({rate_beyond(trials), 9, infinite});
  EXPECT_NEAR(trials.back().rate, 1e-4, 1e-9);
  EXPECT_EQ(rate_beyond(trials), 0);
}

TEST(RateTrials, TheBestHaveTheLowestLossAndOfEqualOnesTheLowestRate) {
  const auto best = best_of({{0.3, 9, 2}, {0.1, 9, 1}, {0.03, 9, 1}, {0.01, 9, 3}}, 3);
  ASSERT_EQ(best.size(), 3U);
  EXPECT_EQ(best[0].rate, 0.03);
  EXPECT_EQ(best[1].rate, 0.1);
  EXPECT_EQ(best[2].rate, 0.3);
  EXPECT_EQ(best_of({{0.3, 9, 2}}, 3).size(), 1U);
}

TEST(RateTrials, TheScoreDecidesBeforeTheLossAndWhatLearnsNothingComesLast) {
  const auto best = best_of({{.rate = 0.3, .steps = 9, .loss = 1.79, .score = 0.17},
                             {.rate = 0.1, .steps = 9, .loss = 2.0, .score = 0.5, .learns = true},
                             {.rate = 0.03, .steps = 9, .loss = 1.9, .score = 0.3, .learns = true},
                             {.rate = 0.01, .steps = 9, .loss = 1.0, .score = 0.9}},
                            4);
  EXPECT_EQ(best[0].rate, 0.1);
  EXPECT_EQ(best[1].rate, 0.03);
  EXPECT_EQ(best[2].rate, 0.01);
}

TEST(RateTrials, OfScoresWithinTheirStandardErrorTheLowestLossIsTheBest) {
  std::vector<RateCurve::Trial> trials{
      {.rate = 0.1, .steps = 9, .loss = 2.1, .score = 0.58, .samples = 300, .learns = true},
      {.rate = 0.03, .steps = 9, .loss = 1.32, .score = 0.547, .samples = 300, .learns = true},
      {.rate = 0.01, .steps = 9, .loss = 1.319, .score = 0.443, .samples = 300, .learns = true}};
  EXPECT_EQ(best_of(trials, 1).front().rate, 0.03);
  for (RateCurve::Trial& trial : trials) trial.samples = 30000;
  EXPECT_EQ(best_of(trials, 1).front().rate, 0.1);
}

Evaluation of_confusion(double loss, const std::vector<std::vector<int64_t>>& confusion) {
  Evaluation result;
  result.has_loss = result.has_accuracy = true;
  result.loss = loss;
  result.confusion = confusion;
  int64_t right = 0;
  for (size_t i = 0; i < confusion.size(); ++i) {
    right += confusion[i][i];
    for (const int64_t count : confusion[i]) result.samples += count;
  }
  result.top1 = double(right) / double(result.samples);
  return result;
}

TEST(RateTrials, EqualScoresForAllImagesAreNotLearned) {
  const double even = std::log(2.0);
  EXPECT_FALSE(beats_constant_scores(of_confusion(even, {{50, 0}, {50, 0}}), 2));
  EXPECT_FALSE(beats_constant_scores(of_confusion(0.8, {{27, 23}, {23, 27}}), 2)) << "by chance";
  EXPECT_TRUE(beats_constant_scores(of_confusion(2.0, {{40, 10}, {10, 40}}), 2)) << "overfit";
  EXPECT_TRUE(beats_constant_scores(of_confusion(0.5, {{50, 0}, {50, 0}}), 2)) << "by its loss";
  EXPECT_FALSE(beats_constant_scores(of_confusion(0.7, {{90, 0}, {10, 0}}), 2)) << "the majority";
  Evaluation many = of_confusion(9, {{100}});
  many.confusion.clear();
  many.top1 = 0;
  EXPECT_FALSE(beats_constant_scores(many, 2000));
  many.top1 = 0.1;
  EXPECT_TRUE(beats_constant_scores(many, 2000));
  EXPECT_TRUE(beats_constant_scores({}, 3)) << "numbers have no accuracy";
}

RateCurve of_losses(const std::vector<double>& losses) {
  RateCurve curve;
  for (const double loss : losses) add_point(curve, 0.1, loss);
  return curve;
}

TEST(RateTrials, TheLastLossIsTheMeanOfTheLastThird) {
  EXPECT_NEAR(last_loss(of_losses({9, 9, 9, 9, 2, 4})), 3, 1e-12);
  EXPECT_NEAR(last_loss(of_losses({5})), 5, 1e-12);
}

TEST(RateTrials, LearningIsMoreThanTheVariationOfTheFirstLosses) {
  RateCurve curve;  // varies by 0.14
  for (int i = 0; i < 30; ++i) add_point(curve, std::pow(10, -4 + i / 10.0), i % 2 ? 2.2 : 2.4);
  EXPECT_FALSE(learns(curve, of_losses(std::vector<double>(60, 2.25))));
  EXPECT_TRUE(learns(curve, of_losses(std::vector<double>(60, 2.1))));
  EXPECT_FALSE(learns(curve, of_losses(std::vector<double>(3, 2.1)))) << "one loss may be luck";
  EXPECT_FALSE(learns(curve, of_losses(std::vector<double>(60, 2.6))));
}

TEST(RateCurve, HasALineForEachPointAndTrialAndAPicture) {
  RateCurve curve = valley();
  curve.trials = {{0.03, 100, 1.5, 0.5}, {0.3, 100, infinite}, {0.03, 300, 0.75, 0.9}};
  curve.is_scored = true;
  curve.suggestion = 0.03;
  const std::string table = to_csv(curve), picture = to_svg(curve);
  EXPECT_THAT(table, StartsWith("rate,loss,smoothed,trial_steps,trial_score\n0.0001,3,3,,\n"));
  EXPECT_THAT(table, EndsWith("0.03,1.5,,100,0.5\n0.3,inf,,100,0\n0.03,0.75,,300,0.9\n"));
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 1 + 31 + 3);
  EXPECT_THAT(picture,
              AllOf(HasSubstr("suggested 0.03<"), HasSubstr("1e-4"),
                    HasSubstr("300 steps at 0.03: loss 0.75, score 0.9"), Not(HasSubstr("\"inf"))));
}

}  // namespace
}  // namespace tandem
