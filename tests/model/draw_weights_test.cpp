#include <gmock/gmock.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "core/model/net.h"

namespace tandem {
namespace {

// Three arrays with padding between them: of many pieces, of one, and one that is drawn whole.
Net three_arrays() {
  Net net;
  net.weights.resize(3);
  const int64_t counts[] = {(1 << 20) + 5, 7, 600'000};
  const char* types[] = {"gaussian", "xavier", "positive_unitball"};
  for (size_t i = 0; i < 3; ++i) {
    WeightArray& weight = net.weights[i];
    weight.name = types[i];
    weight.count = counts[i];
    weight.shape = {1, 1, 1, counts[i]};
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

TEST(DrawWeights, WhatTheSinkThrowsComesOut) {
  const Net net = three_arrays();
  EXPECT_THROW(
      draw_weights(net, 9,
                   [](int64_t, const float*, int64_t) { throw std::runtime_error("no device"); }),
      std::runtime_error);
}

}  // namespace
}  // namespace tandem
