#include "core/base/numbers/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tandem {
namespace {

void expect_block(const tandem_random4& block, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  EXPECT_EQ(block.value[0], a);
  EXPECT_EQ(block.value[1], b);
  EXPECT_EQ(block.value[2], c);
  EXPECT_EQ(block.value[3], d);
}

// The three known answers for philox4x32-10 published with Random123 (file kat_vectors).
TEST(Philox, GivesThePublishedAnswers) {
  expect_block(tandem_philox(0, 0, 0, 0, 0, 0), 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8);
  const uint32_t ones = 0xffffffff;
  expect_block(tandem_philox(ones, ones, ones, ones, ones, ones), 0x408f276d, 0x41c83b0e,
               0xa20bc7c6, 0x6d5451fd);
  expect_block(
      tandem_philox(0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0),
      0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1);
}

TEST(Philox, GivesEveryCoordinateOfALayersDrawItsOwnBlock) {
  const tandem_random4 reference = tandem_random_block(1, 2, 3, 4, 5);
  const tandem_random4 others[] = {
      tandem_random_block(9, 2, 3, 4, 5),          tandem_random_block(1, 9, 3, 4, 5),
      tandem_random_block(1, 2, 9, 4, 5),          tandem_random_block(1, 2, 3, 9, 5),
      tandem_random_block(1, 2, 3, 4, 9),          tandem_random_block(1ull << 40, 2, 3, 4, 5),
      tandem_random_block(1, 1ull << 40, 3, 4, 5), tandem_random_block(1, 2, 3, 4 | 1ull << 40, 5)};
  for (const tandem_random4& other : others) {
    EXPECT_FALSE(std::equal(other.value, other.value + 4, reference.value));
  }
}

TEST(Philox, UniformStaysBelowOne) {
  EXPECT_EQ(tandem_uniform(0), 0.0f);
  EXPECT_LT(tandem_uniform(0xffffffff), 1.0f);
}

TEST(Random, IsAFunctionOfSeedAndStream) {
  Random a(7, 1);
  Random same(7, 1);
  Random other_seed(8, 1);
  Random other_stream(7, 2);
  bool seed_matters = false;
  bool stream_matters = false;
  for (int i = 0; i < 16; ++i) {
    const uint32_t bits = a.bits();
    EXPECT_EQ(bits, same.bits());
    seed_matters |= bits != other_seed.bits();
    stream_matters |= bits != other_stream.bits();
  }
  EXPECT_TRUE(seed_matters);
  EXPECT_TRUE(stream_matters);
}

TEST(Random, StartsWithTheFirstPhiloxBlockOfItsKey) {
  Random random(0, 0);
  EXPECT_EQ(random.bits(), 0x6627e8d5u);
  EXPECT_EQ(random.bits(), 0xe169c58du);
  EXPECT_EQ(random.bits(), 0xbc57ac4cu);
  EXPECT_EQ(random.bits(), 0x9b00dbd8u);
  EXPECT_EQ(random.bits(), tandem_philox(1, 0, 0, 0, 0, 0).value[0]);
}

TEST(Random, UniformIsEvenlySpreadOverTheUnitInterval) {
  Random random(3, 0);
  double sum = 0;
  std::vector<int> bins(10);
  for (int i = 0; i < 20000; ++i) {
    const double value = random.uniform();
    ASSERT_GE(value, 0);
    ASSERT_LT(value, 1);
    sum += value;
    ++bins[static_cast<size_t>(value * 10)];
  }
  EXPECT_NEAR(sum / 20000, 0.5, 0.01);
  for (const int bin : bins) EXPECT_NEAR(bin, 2000, 200);
}

TEST(Random, NormalHasMeanZeroVarianceOneAndNormalTails) {
  Random random(4, 0);
  double sum = 0;
  double squares = 0;
  int beyond_two = 0;
  for (int i = 0; i < 20000; ++i) {
    const double value = random.normal();
    sum += value;
    squares += value * value;
    beyond_two += std::abs(value) > 2 ? 1 : 0;
  }
  EXPECT_NEAR(sum / 20000, 0, 0.03);
  EXPECT_NEAR(squares / 20000, 1, 0.04);
  EXPECT_NEAR(beyond_two / 20000.0, 0.0455, 0.006);
}

TEST(Random, BelowStaysBelowAndIsUnbiasedForAwkwardBounds) {
  Random random(5, 0);
  EXPECT_EQ(random.below(0), 0u);
  EXPECT_EQ(random.below(1), 0u);
  // Without rejection, this bound would make the lower third twice as likely as the rest.
  const uint64_t bound = 3ull << 62;
  int lower_third = 0;
  for (int i = 0; i < 6000; ++i) {
    const uint64_t value = random.below(bound);
    ASSERT_LT(value, bound);
    lower_third += value < (1ull << 62) ? 1 : 0;
  }
  EXPECT_NEAR(lower_third, 2000, 200);
}

TEST(Random, ShuffleIsAPermutationThatMovesThings) {
  std::vector<int> values(100);
  std::iota(values.begin(), values.end(), 0);
  const std::vector<int> sorted = values;
  Random random(6, 0);
  random.shuffle(values);
  EXPECT_NE(values, sorted);
  std::sort(values.begin(), values.end());
  EXPECT_EQ(values, sorted);
}

TEST(StreamOf, IsFnv1aOfTheName) {
  EXPECT_EQ(stream_of(""), 0xcbf29ce484222325u);
  EXPECT_EQ(stream_of("a"), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(stream_of("foobar"), 0x85944171f73967e8u);
}

}  // namespace
}  // namespace tandem
