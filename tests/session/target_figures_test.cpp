// Figures of several labels, beside what scikit-learn's functions give.
#include "core/session/target_figures.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tandem {
namespace {

// sklearn.metrics.average_precision_score([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]) is 0.8333...
TEST(AveragePrecision, IsTheAreaUnderTheStepsOfPrecision) {
  EXPECT_DOUBLE_EQ(average_precision({0.1F, 0.4F, 0.35F, 0.8F}, {false, false, true, true}),
                   5.0 / 6);
  EXPECT_DOUBLE_EQ(average_precision({3, 2, 1}, {true, true, false}), 1);
}

TEST(AveragePrecision, TakesEqualScoresTogether) {
  EXPECT_DOUBLE_EQ(average_precision({1, 1, 1, 1}, {true, false, false, false}), 0.25);
  EXPECT_DOUBLE_EQ(average_precision({1, 1, 1, 1}, {false, false, false, true}), 0.25);
}

TEST(AveragePrecision, OfALabelThatNoImageHasIsNoNumber) {
  EXPECT_TRUE(std::isnan(average_precision({1, 2}, {false, false})));
}

TEST(AveragePrecision, RanksScoresThatAreNoNumbersLast) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_DOUBLE_EQ(average_precision({nan, 2, 1}, {true, false, false}), 1.0 / 3);
}

}  // namespace
}  // namespace tandem
