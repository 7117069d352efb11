// What the strategy `asymmetric` sends in which messages and in which order.
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "core/schedule/plan/buffers.h"
#include "core/schedule/strategies/asymmetric/asymmetric_broadcast.h"
#include "core/schedule/strategies/asymmetric/asymmetric_rows.h"
#include "tests/schedule/plan_checks.h"

namespace tandem::test {
namespace {

std::vector<BackwardRows> parts_of(const std::vector<int>& errors, const std::vector<int>& weights,
                                   int64_t batch) {
  static const Net net = small_net(9);
  const auto devices = static_cast<int>(errors.size() + weights.size());
  Net sized = net;
  sized.batch = batch;
  const StrategyInputs inputs = inputs_of(sized, devices);
  return backward_rows(inputs, {errors, weights});
}

TEST(BackwardRows, AreEveryRowOnceAndAsManyOnEveryDevice) {
  for (const int64_t batch : {4, 9, 64, 101}) {
    for (const auto& parts : {parts_of({0, 2}, {1, 3}, batch), parts_of({0, 1, 2}, {3}, batch),
                              parts_of({3}, {0, 1, 2}, batch), parts_of({1}, {0}, batch)}) {
      std::set<int64_t> rows;
      std::map<int, int64_t> counts;
      for (const BackwardRows& part : parts) {
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

TEST(BackwardRows, OfADeviceAreItsOwnFirst) {
  const std::vector<BackwardRows> parts = parts_of({0, 2}, {1, 3}, 8);
  ASSERT_EQ(parts.size(), 4);
  EXPECT_TRUE(parts[0].is_own());
  EXPECT_FALSE(parts[1].is_own());
  EXPECT_TRUE(parts[2].is_own());
  EXPECT_EQ(parts[2].device, 2);
}

TEST(GradientMessages, LetEveryDeviceSendWhileAnotherReceives) {
  const std::vector<BackwardRows> parts{{0, {0, 64}, 0}, {2, {64, 128}, 2}};
  const std::vector<GradientMessage> messages = gradient_messages(parts, 2, int64_t{1} << 20);
  ASSERT_EQ(messages.size(), 32);  // 8 of each, to both
  for (size_t i = 0; i < messages.size(); i += 2) {
    EXPECT_NE(messages[i].part, messages[i + 1].part);
    EXPECT_NE(messages[i].target, messages[i + 1].target);
  }
}

TEST(GradientMessages, OfSmallTensorsAreWholeParts) {
  const std::vector<BackwardRows> parts{{0, {0, 64}, 0}};
  const std::vector<GradientMessage> messages = gradient_messages(parts, 1, 1024);
  ASSERT_EQ(messages.size(), 1);
  EXPECT_EQ(messages[0].rows.count(), 64);
}

TEST(PassRows, AreWholeMessagesOfAtLeastSixtyFourRows) {
  const std::vector<BackwardRows> parts{{0, {0, 200}, 0}};
  const std::vector<GradientMessage> messages = gradient_messages(parts, 2, int64_t{1} << 20);
  std::set<int64_t> ends;
  for (const GradientMessage& message : messages) ends.insert(message.rows.end);
  const std::vector<Interval> passes = pass_rows(parts, 0, messages);
  EXPECT_EQ(passes.size(), 2);
  int64_t at = 0;
  for (const Interval& rows : passes) {
    EXPECT_EQ(rows.begin, at);
    EXPECT_GE(rows.count(), 64);
    EXPECT_TRUE(ends.contains(rows.end)) << rows.end;
    at = rows.end;
  }
  EXPECT_EQ(at, 200);
}

TEST(PassRows, AreAllWhereMessagesAreFewRows) {
  const std::vector<BackwardRows> parts{{0, {8, 24}, 0}};
  const std::vector<Interval> passes =
      pass_rows(parts, 0, gradient_messages(parts, 1, int64_t{4} << 20));
  ASSERT_EQ(passes.size(), 1);
  EXPECT_EQ(passes[0].begin, 8);
  EXPECT_EQ(passes[0].end, 24);
}

TEST(MessageRows, AreEveryRowOnceInAtMostEightMessages) {
  for (const int64_t row_bytes : {4, 1 << 16, 1 << 20}) {
    int64_t at = 3;
    const std::vector<Interval> messages = message_rows({3, 103}, row_bytes);
    for (const Interval& rows : messages) {
      EXPECT_EQ(rows.begin, at);
      at = rows.end;
    }
    EXPECT_EQ(at, 103);
    EXPECT_EQ(messages.size(), row_bytes == 4 ? 1U : row_bytes == 1 << 16 ? 4U : 8U);
  }
}

TEST(RowBytes, AreThoseOfTheTensorsDtype) {
  Net net = small_net(8);
  const int output = net.layers[0].outputs[0];
  const int64_t whole = buffers::row_bytes(net, output);
  net.tensors[size_t(output)].dtype = TANDEM_BFLOAT16;
  EXPECT_EQ(2 * buffers::row_bytes(net, output), whole);
}

TEST(WeightTransfers, HandAMessageOnAlongItsLineFromItsOwnerBothWays) {
  std::vector<WeightMessage> messages(2);
  for (WeightMessage& message : messages) message = {0, 0, 1, {}, {3, 1, 0, 2}};
  const std::vector<WeightTransfer> transfers = weight_transfers(messages);
  ASSERT_EQ(transfers.size(), 6);
  const std::vector<std::pair<int, int>> ways{{1, 0}, {0, 2}, {1, 3}};
  for (size_t i = 0; i < transfers.size(); ++i) {
    EXPECT_EQ(transfers[i].message, i / 3);
    EXPECT_EQ(std::pair(transfers[i].from, transfers[i].to), ways[i % 3]);
  }
}

}  // namespace
}  // namespace tandem::test
