// Initial values of weights: the fillers, and drawing them block by block.
#include "core/model/net/initial_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "tests/model/net_test.h"

namespace tandem {
namespace {

using namespace test;
using testing::HasSubstr;

// Three arrays with padding between them: of many blocks, of one, and one of large rows.
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

TEST(DrawWeights, GivesTheInitialWeightsBlockByBlock) {
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

TEST(DrawWeights, DividesLargeArraysButNoRowOfAUnitball) {
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

TEST(DrawWeights, EndsOnAllThreadsWhenTheSinkThrows) {
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

TEST(DrawWeights, ThrowsTheExceptionOfTheSink) {
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

// Mean and deviation of a filler's values for a 400x3x3x3 weight (fan in 27, fan out 3600).
struct Moments {
  double mean, deviation, low, high;
};
Moments moments(const std::string& filler) {
  const Net net = build(data_layer +
                        layer("c", "Convolution", "data", "c",
                              "convolution_param { num_output: 400 kernel_size: 3 pad: 1 "
                              "weight_filler { " +
                                  filler + " } }") +
                        inner_product_layer("ip", "c", "ip") + loss_layer);
  const std::vector<float> values = initial_weights(net, 1);
  const auto count = static_cast<size_t>(net.weights[0].count);
  Moments result{0, 0, 1e9, -1e9};
  for (size_t i = 0; i < count; ++i) {
    result.mean += values[i] / static_cast<double>(count);
    result.low = std::min<double>(result.low, values[i]);
    result.high = std::max<double>(result.high, values[i]);
  }
  for (size_t i = 0; i < count; ++i) {
    result.deviation += std::pow(values[i] - result.mean, 2) / static_cast<double>(count);
  }
  result.deviation = std::sqrt(result.deviation);
  return result;
}

TEST(Fillers, ConstantIsEverywhere) {
  const Moments m = moments("value: 0.5");
  EXPECT_EQ(m.low, 0.5);
  EXPECT_EQ(m.high, 0.5);
}

TEST(Fillers, UniformFillsItsRange) {
  const Moments m = moments("type: 'uniform' min: -1 max: 3");
  EXPECT_NEAR(m.mean, 1, 0.05);
  EXPECT_GE(m.low, -1);
  EXPECT_LE(m.high, 3);
  EXPECT_NEAR(m.high - m.low, 4, 0.01);
}

TEST(Fillers, GaussianHasItsMeanAndDeviation) {
  const Moments m = moments("type: 'gaussian' mean: 2 std: 0.1");
  EXPECT_NEAR(m.mean, 2, 0.005);
  EXPECT_NEAR(m.deviation, 0.1, 0.002);
}

TEST(Fillers, XavierIsUniformWithinTheRootOfThreeOverTheFan) {
  EXPECT_NEAR(moments("type: 'xavier'").high, std::sqrt(3.0 / 27), 0.001);
  EXPECT_NEAR(moments("type: 'xavier' variance_norm: FAN_OUT").high, std::sqrt(3.0 / 3600), 0.001);
  EXPECT_NEAR(moments("type: 'xavier' variance_norm: AVERAGE").low, -std::sqrt(6.0 / 3627), 0.001);
}

TEST(Fillers, MsraIsGaussianWithTheRootOfTwoOverTheFan) {
  EXPECT_NEAR(moments("type: 'msra'").deviation, std::sqrt(2.0 / 27), 0.005);
}

TEST(Fillers, SparseGaussianKeepsThatManyWeightsOfEachInput) {
  const Moments m = moments("type: 'gaussian' std: 1 sparse: 40");
  EXPECT_NEAR(m.deviation * m.deviation, 0.1, 0.01) << "40 of 400 outputs";
  EXPECT_GT(m.high, 2);
  EXPECT_EQ(moments("type: 'gaussian' mean: 5 sparse: 0").high, 0);
}

TEST(Fillers, PositiveUnitballRowsAddUpToOne) {
  const Net net = build(data_layer +
                        inner_product_layer("ip", "data", "ip",
                                            "inner_product_param { weight_filler { type: "
                                            "'positive_unitball' } }") +
                        loss_layer);
  const std::vector<float> values = initial_weights(net, 1);
  const int64_t length = net.weights[0].count / 4;
  for (int64_t row = 0; row < 4; ++row) {
    double sum = 0, low = 1;
    for (int64_t i = 0; i < length; ++i) {
      const float value = values[static_cast<size_t>(row * length + i)];
      sum += value;
      low = std::min<double>(low, value);
    }
    EXPECT_NEAR(sum, 1, 1e-5);
    EXPECT_GE(low, 0);
  }
}

TEST(Fillers, BilinearFallsLinearlyFromTheCentre) {
  const Net net = build(data_layer +
                        layer("c", "Convolution", "data", "c",
                              "convolution_param { num_output: 2 kernel_size: 4 pad: 1 "
                              "weight_filler { type: 'bilinear' } }") +
                        inner_product_layer("ip", "c", "ip") + loss_layer);
  const std::vector<float> values = initial_weights(net, 1);
  const double line[] = {0.25, 0.75, 0.75, 0.25};
  for (size_t i = 0; i < 96; ++i) {
    EXPECT_FLOAT_EQ(values[i], static_cast<float>(line[i % 4] * line[i / 4 % 4])) << i;
  }
}

TEST(Fillers, DependOnTheSeedAndTheWeightsNameOnly) {
  const std::string filled =
      "inner_product_param { num_output: 4 weight_filler { type: 'gaussian' } }";
  const std::string last = layer("ip", "InnerProduct", "data", "ip", filled) + loss_layer;
  const Net small = build(data_layer + last);
  const Net large = build(data_layer + inner_product_layer("other", "data", "o") + last);
  const std::vector<float> a = initial_weights(small, 5);
  const std::vector<float> b = initial_weights(large, 5);
  const WeightArray& in_small = small.weights[0];
  const WeightArray& in_large = large.weights[2];
  ASSERT_EQ(in_large.name, in_small.name);
  EXPECT_TRUE(std::equal(a.begin() + in_small.offset, a.begin() + in_small.offset + in_small.count,
                         b.begin() + in_large.offset));
  EXPECT_NE(a, initial_weights(small, 6));
}

TEST(Fillers, ALargeArrayHasNoRepeatedBlock) {
  Net net;
  net.weights.resize(1);
  net.weights[0].name = "w";
  net.weights[0].count = net.weight_floats = 1 << 20;
  net.weights[0].filler.type = "gaussian";
  const std::vector<float> values = initial_weights(net, 1);
  EXPECT_EQ(values, initial_weights(net, 1));
  const auto quarter = static_cast<ptrdiff_t>(values.size() / 4);
  for (ptrdiff_t i = 1; i < 4; ++i) {
    EXPECT_FALSE(std::equal(values.begin(), values.begin() + 100, values.begin() + i * quarter));
  }
}

}  // namespace
}  // namespace tandem
