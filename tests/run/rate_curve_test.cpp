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

TEST(RateCurve, SuggestsATenthOfTheRateWithTheLowestSmoothedLoss) {
  RateCurve curve = valley();
  suggest_rate(curve);
  EXPECT_NEAR(curve.lowest, std::pow(10, -1.1), 1e-9);
  EXPECT_NEAR(curve.suggestion, curve.lowest / 10, 1e-12);
}

TEST(RateCurve, ALowFirstLossByChanceIsNotTheLowest) {
  RateCurve curve;
  for (int i = 0; i <= 30; ++i) {
    const double loss = i == 0 ? 0.01 : i <= 25 ? 3 - 0.04 * i : 50;
    add_point(curve, std::pow(10, -4 + i / 10.0), loss);
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
  EXPECT_THAT(picture, HasSubstr("suggested 0.00794"));
  EXPECT_THAT(picture, HasSubstr("1e-4"));
}

}  // namespace
}  // namespace tandem
