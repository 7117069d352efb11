#include <gmock/gmock.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "core/model/net.h"

#include "core/model/initial_weights.h"

namespace tandem {
namespace {

// Three arrays with padding between them: of many pieces, of one, and one of rows of some size.
Net three_arrays() {
  Net net;
  net.weights.resize(3);
  const int64_t counts[] = {(1 << 20) + 5, 7, 600'000};
  const char* types[] = {"gaussian", "xavier", "positive_unitball"};
  for (size_t i = 0; i < 3; ++i) {
    WeightArray& weight = net.weights[i];
    weight.name = types[i];
    weight.count = counts[i];
    weight.shape = {i == 2 ? 6 : 1, 1, 1, i == 2 ? counts[i] / 6 : counts[i]};
    weight.fan_in = 3;
    weight.filler.type = types[i];
    weight.offset = net.weight_floats;
    net.weight_floats += weight.count + 3;
  }
  return net;
}

TEST(DrawWeights, GivesTheInitialWeightsPieceByPiece) {
  const Net net = three_arrays();
  std::vector<float> values(static_cast<size_t>(net.weight_floats));
  int64_t drawn = 0;
  draw_weights(net, 9, [&](int64_t first, const float* piece, int64_t count) {
    std::copy_n(piece, count, values.begin() + first);
    drawn += count;
  });
  EXPECT_EQ(values, initial_weights(net, 9));
  EXPECT_EQ(drawn, net.weight_floats - 9);
}

TEST(DrawWeights, HoldsNoLargeArrayAsAWholeAndYetEveryRowOfAUnitballAddsUpToOne) {
  const Net net = three_arrays();
  const WeightArray& ball = net.weights[2];
  int64_t largest = 0;
  std::vector<double> sums(6);
  draw_weights(net, 9, [&](int64_t first, const float* piece, int64_t count) {
    largest = std::max(largest, count);
    for (int64_t i = 0; i < count && first >= ball.offset; ++i) {
      sums[static_cast<size_t>((first - ball.offset + i) / 100'000)] += piece[i];
    }
  });
  EXPECT_LE(largest, 1 << 18);
  for (const double sum : sums) EXPECT_NEAR(sum, 1, 1e-5);
}

TEST(DrawWeights, IsOverForAllThreadsWhenTheSinkThrows) {
  Net net = three_arrays();
  net.weights.resize(1);
  net.weights[0].count = net.weight_floats = int64_t{1} << 24;  // 64 pieces
  int calls = 0;
  const auto fail_once = [&](int64_t, const float*, int64_t) {
    if (++calls == 1) throw std::runtime_error("no device");
  };
  EXPECT_THROW(draw_weights(net, 9, fail_once), std::runtime_error);
  EXPECT_LE(calls, 40) << "at most one more of each of at most 32 threads";
}

TEST(DrawWeights, WhatTheSinkThrowsComesOut) {
  const Net net = three_arrays();
  EXPECT_THROW(
      draw_weights(net, 9,
                   [](int64_t, const float*, int64_t) { throw std::runtime_error("no device"); }),
      std::runtime_error);
}

TEST(DrawWeights, ASparseGaussianKeepsValuesOfTheFullOne) {
  Net net = three_arrays();
  net.weights.resize(1);
  net.weights[0].shape = {10, 1, 1, net.weights[0].count / 10};
  const std::vector<float> full = initial_weights(net, 9);
  net.weights[0].filler.sparse = 3;
  const std::vector<float> sparse = initial_weights(net, 9);
  int64_t kept = 0;
  for (size_t i = 0; i < full.size(); ++i) {
    if (sparse[i] == 0) continue;
    ASSERT_EQ(sparse[i], full[i]) << i;
    ++kept;
  }
  EXPECT_NEAR(static_cast<double>(kept) / static_cast<double>(net.weights[0].count), 0.3, 0.01);
}

}  // namespace
}  // namespace tandem
