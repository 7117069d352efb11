// What the strategy `asymmetric` sends in which pieces and in which order.
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "core/schedule/strategies/asymmetric_sending.h"
#include "tests/schedule/plan_checks.h"

namespace tandem::test {
namespace {

std::vector<ErrorRows> parts_of(const std::vector<int>& errors, const std::vector<int>& weights,
                                int64_t batch) {
  static const Net net = small_net(9);
  const auto devices = static_cast<int>(errors.size() + weights.size());
  Net sized = net;
  sized.batch = batch;
  const StrategyInputs inputs = inputs_of(sized, devices);
  return error_rows(inputs, {errors, weights});
}

TEST(ErrorRows, AreEveryRowOnceAndAsManyOnEveryDevice) {
  for (const int64_t batch : {4, 9, 64, 101}) {
    for (const auto& parts : {parts_of({0, 2}, {1, 3}, batch), parts_of({0, 1, 2}, {3}, batch),
                              parts_of({3}, {0, 1, 2}, batch), parts_of({1}, {0}, batch)}) {
      std::set<int64_t> rows;
      std::map<int, int64_t> counts;
      for (const ErrorRows& part : parts) {
        for (int64_t row = part.rows.begin; row < part.rows.end; ++row) {
          EXPECT_TRUE(rows.insert(row).second) << row;
          ++counts[part.device];
        }
      }
      EXPECT_EQ(int64_t(rows.size()), batch);
      for (const auto& [device, count] : counts) {
        EXPECT_LE(std::abs(count - batch / int64_t(counts.size())), 1) << device;
      }
    }
  }
}

TEST(ErrorRows, OfADeviceAreItsOwnFirst) {
  const std::vector<ErrorRows> parts = parts_of({0, 2}, {1, 3}, 8);
  ASSERT_EQ(parts.size(), 4);
  EXPECT_TRUE(parts[0].is_own());
  EXPECT_FALSE(parts[1].is_own());
  EXPECT_TRUE(parts[2].is_own());
  EXPECT_EQ(parts[2].device, 2);
}

TEST(ErrorPieces, LetEveryDeviceSendWhileAnotherReceives) {
  const std::vector<ErrorRows> parts{{0, {0, 64}, 0}, {2, {64, 128}, 2}};
  const std::vector<ErrorPiece> pieces = error_pieces(parts, 2, int64_t{1} << 20);
  ASSERT_EQ(pieces.size(), 32);  // 8 of each, to both
  for (size_t i = 0; i < pieces.size(); i += 2) {
    EXPECT_NE(pieces[i].part, pieces[i + 1].part);
    EXPECT_NE(pieces[i].target, pieces[i + 1].target);
  }
}

TEST(ErrorPieces, OfSmallTensorsAreWholeParts) {
  const std::vector<ErrorRows> parts{{0, {0, 64}, 0}};
  const std::vector<ErrorPiece> pieces = error_pieces(parts, 1, 1024);
  ASSERT_EQ(pieces.size(), 1);
  EXPECT_EQ(pieces[0].rows.count(), 64);
}

TEST(WeightHops, OfADeviceThatHandsOnWhatItReceivesFollowOthersThatItSendsMeanwhile) {
  std::vector<WeightChunk> chunks(6);
  for (WeightChunk& chunk : chunks) chunk.line = {0, 1, 2};
  const std::vector<WeightHop> hops = weight_hops(chunks, 1);
  ASSERT_EQ(hops.size(), 12);
  std::vector<size_t> order;
  for (const WeightHop& hop : hops) {
    EXPECT_EQ(hop.to, hop.from + 1);
    if (hop.from == 1) order.push_back(hop.chunk);
    if (hop.chunk == 0 && hop.from == 1) {
      EXPECT_GE(&hop - hops.data(), 2);
    }
  }
  EXPECT_EQ(order, (std::vector<size_t>{0, 1, 2, 3, 4, 5}));
}

}  // namespace
}  // namespace tandem::test
