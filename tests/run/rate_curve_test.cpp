// The curve of --find-lr.
#include "core/run/rate_curve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/message_of.h"

namespace tandem {
namespace {

using testing::HasSubstr;
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

TEST(RateCurve, SuggestsAThirdOfTheRateWithTheLowestSmoothedLoss) {
  RateCurve curve = valley();
  curve.points.pop_back();
  suggest_rate(curve);
  EXPECT_NEAR(curve.lowest, std::pow(10, -1.1), 1e-9);
  EXPECT_NEAR(curve.suggestion, curve.lowest / 3, 1e-12);
}

TEST(RateCurve, ALowFirstLossByChanceIsNotTheLowest) {
  RateCurve curve;
  for (int i = 0; i <= 55; ++i) {
    const double loss = i == 0 ? 0.9 : i <= 50 ? 3 - 0.07 * std::max(0, i - 19) : 50;
    add_point(curve, std::pow(10, -4 + i / 20.0), loss);
  }
  suggest_rate(curve);
  EXPECT_NEAR(curve.lowest, std::pow(10, -1.5), 1e-9);
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

TEST(RateCurve, TheMeanOfSeveralEndsWithTheShortest) {
  RateCurve one = valley(), other = valley();
  other.points.resize(20);
  other.points[19].loss += 2;
  other.diverged = true;
  const RateCurve mean = mean_of({one, other});
  ASSERT_EQ(mean.points.size(), 20U);
  EXPECT_TRUE(mean.diverged);
  EXPECT_NEAR(mean.points[19].loss, one.points[19].loss + 1, 1e-12);
  EXPECT_NEAR(mean.points[10].smoothed, one.points[10].smoothed, 1e-12);
}

TEST(RateCurve, SuggestsAtMostAnEighthOfTheRateFromWhichOnTheLossIsAboveItsFirstValues) {
  RateCurve curve;
  for (int i = 0; i <= 40; ++i) {
    add_point(curve, std::pow(10, -4 + i / 10.0), i < 20 ? 3 : i <= 31 ? 3 - 0.1 * (i - 19) : 6);
  }
  suggest_rate(curve);
  EXPECT_NEAR(curve.lowest, std::pow(10, -0.9), 1e-9);
  EXPECT_GT(curve.rise, curve.lowest);
  EXPECT_LT(curve.rise, 8 * curve.lowest / 3);
  EXPECT_NEAR(curve.suggestion, curve.rise / 8, 1e-12);
}

TEST(RateCurve, OfALossThatOnlyVariesSuggestsNothing) {
  RateCurve curve;
  for (int i = 0; i <= 30; ++i) add_point(curve, std::pow(10, -4 + i / 10.0), i % 2 ? 2.2 : 2.4);
  EXPECT_THAT(test::message_of([&] { suggest_rate(curve); }),
              HasSubstr("did the loss fall by more than its noise"));
}

TEST(RateCurve, OfTooFewPointsIsRefused) {
  RateCurve curve;
  add_point(curve, 1e-6, 2);
  EXPECT_THAT(test::message_of([&] { suggest_rate(curve); }),
              HasSubstr("not finite after 1 steps"));
}

TEST(RateCurve, HasALineForEachPointAndAPicture) {
  RateCurve curve = valley();
  suggest_rate(curve);
  const std::string table = to_csv(curve), picture = to_svg(curve);
  EXPECT_THAT(table, StartsWith("rate,loss,smoothed\n0.0001,3,3\n"));
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 32);
  EXPECT_THAT(picture, HasSubstr("suggested 0.0125"));
  EXPECT_THAT(picture, HasSubstr("1e-4"));
}

}  // namespace
}  // namespace tandem
