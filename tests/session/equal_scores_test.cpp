// Whether all samples of an evaluation have the same scores.
#include <gtest/gtest.h>

#include <limits>

#include "core/session/evaluate.h"

namespace tandem::test {
namespace {

bool holds(const std::vector<std::vector<float>>& samples) {
  EqualScores equal;
  const PredictionSink sink = equal.sink({});
  for (const auto& scores : samples) {
    sink(0, 0, scores.data(), static_cast<int64_t>(scores.size()));
  }
  return equal.holds();
}

TEST(EqualScores, HoldForSamplesThatDifferByRoundingAlone) {
  EXPECT_TRUE(holds({{1, -2}, {1, -2.000001F}, {1.000001F, -2}}));
  EXPECT_FALSE(holds({{1, -2}, {1, -2.00001F}}));
  EXPECT_FALSE(holds({{1, -2}, {1, -2}, {-2, 1}, {1, -2}}));
}

TEST(EqualScores, DoNotHoldForOneSampleOrForWhatIsNotANumber) {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(holds({{1, 2}}));
  EXPECT_FALSE(holds({{1, nan}, {1, nan}}));
  EXPECT_FALSE(holds({{1, 2}, {1, nan}}));
}

TEST(EqualScores, HandEachSampleOn) {
  EqualScores equal;
  int64_t seen = 0;
  const PredictionSink sink =
      equal.sink([&](int64_t index, int64_t, const float*, int64_t) { seen += index; });
  const std::vector<float> scores{1, 2};
  sink(3, 0, scores.data(), 2);
  sink(4, 1, scores.data(), 2);
  EXPECT_EQ(seen, 7);
  EXPECT_EQ(equal.samples(), 2);
}

}  // namespace
}  // namespace tandem::test
