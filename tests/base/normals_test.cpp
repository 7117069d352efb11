#include "core/base/numbers/normals.h"

#include <gmock/gmock.h>

#include <bit>
#include <cmath>
#include <vector>

#include "core/base/numbers/random.h"

namespace tandem {
namespace {

std::vector<float> drawn(uint64_t seed, uint64_t stream, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  draw_normals(seed, stream, 0, 1, count, values.data());
  return values;
}

TEST(Normals, AreThoseOfRandomToTheLastBits) {
  for (uint64_t stream = 0; stream < 4; ++stream) {
    const std::vector<float> values = drawn(7, stream, 1 << 18);
    Random random(7, stream);
    for (size_t i = 0; i < values.size(); ++i) {
      const double exact = random.normal();
      ASSERT_NEAR(values[i], exact, 4e-7 * std::abs(exact)) << stream << " " << i;
    }
  }
}

TEST(Normals, HaveTheMomentsOfTheNormalDistribution) {
  const std::vector<float> values = drawn(1, 2, 1 << 22);
  double sums[5] = {};
  for (const double value : values) {
    for (int power = 1; power <= 4; ++power) sums[power] += std::pow(value, power);
  }
  const auto count = static_cast<double>(values.size());
  EXPECT_NEAR(sums[1] / count, 0, 0.002);
  EXPECT_NEAR(sums[2] / count, 1, 0.003);
  EXPECT_NEAR(sums[3] / count, 0, 0.006);
  EXPECT_NEAR(sums[4] / count, 3, 0.02);
}

TEST(Normals, ReachBeyondFiveDeviationsAsOftenAsTheyShould) {
  int beyond = 0;
  constexpr int streams = 64;
  for (uint64_t stream = 0; stream < streams; ++stream) {
    for (const float value : drawn(3, stream, 1 << 18)) beyond += std::abs(value) > 5 ? 1 : 0;
  }
  const double expected = streams * double{1 << 18} * 5.733e-7;  // 9.6
  EXPECT_NEAR(beyond, expected, 4 * std::sqrt(expected));
  EXPECT_GT(beyond, 0);
}

TEST(Normals, AShortDrawIsTheBeginningOfALongOne) {
  const std::vector<float> all = drawn(5, 6, 1000);
  for (const int64_t count : {0, 1, 2, 63, 64, 65, 127, 129, 999}) {
    const std::vector<float> few = drawn(5, 6, count);
    EXPECT_TRUE(std::equal(few.begin(), few.end(), all.begin())) << count;
  }
}

TEST(Normals, HaveTheseBitsOnEveryMachine) {
  uint64_t hash = 0;
  for (const float value : drawn(7, 119, 1 << 18)) {
    hash = hash * 1099511628211U + std::bit_cast<uint32_t>(value);
  }
  EXPECT_EQ(hash, 0xf1c6ad6b6a7f0ad2U);
}

TEST(Normals, HaveTheGivenMeanAndDeviation) {
  const std::vector<float> plain = drawn(5, 6, 100);
  std::vector<float> values(100);
  draw_normals(5, 6, 3, 0.5F, 100, values.data());
  for (size_t i = 0; i < 100; ++i) EXPECT_EQ(values[i], 3 + 0.5F * plain[i]);
}

}  // namespace
}  // namespace tandem
