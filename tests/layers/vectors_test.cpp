// Shapes that kernels on GPUs process by vectors of channels or pixels, and shapes just beside
// them: in every layout and dtype compared with the cpu's kernels in float32. reference_test.cpp
// and its neighbors have few channels.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/computable.h"
#include "tests/support/reference_check.h"

namespace tandem::test {
namespace {

using Parameters = std::vector<std::pair<std::string, std::string>>;

// A layer, and the roundings of its outputs and input gradients in 16 bits (sixteen_bits_test.cpp).
struct Case {
  std::string type;
  Parameters parameters = {};
  size_t inputs = 1, channel_weights = 0;
  uint32_t outputs = 1;
  double rounds = 1;
};

LayerSetup setup_of(const Case& c, const Shape& shape, int32_t dtype) {
  LayerSetup setup{.type = c.type, .parameters = c.parameters, .output_count = c.outputs};
  for (unsigned i = 0; i < c.inputs; ++i) {
    setup.inputs.push_back(rounded_to(dtype, random_tensor(shape, 1 + i)));
  }
  for (unsigned i = 0; i < c.channel_weights; ++i) {
    setup.weights.push_back(random_tensor({shape.c, 1, 1, 1}, 20 + i));
  }
  if (c.type == "BatchNorm" || c.type == "BatchNormScale") {
    for (float& variance : setup.weights[1].values) variance = 1 + std::abs(variance);
    setup.weights[2] = {{1, 1, 1, 1}, {2.5F}};
  }
  return setup;
}

void expect_close(const std::vector<PlainTensor>& actual, const std::vector<PlainTensor>& expected,
                  double tolerance, const char* what) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    if (expected[i].values.empty() || std::isnan(expected[i].values[0])) continue;
    EXPECT_LE(relative_difference(actual[i].values, expected[i].values), tolerance) << what << i;
  }
}

void compare_with_the_cpu(const Case& c, const Shape& shape, int32_t dtype) {
  const LayerSetup plain = setup_of(c, shape, dtype);
  LayerSetup on_cpu = plain;
  on_cpu.on_a_cpu = true;
  LayerSetup given = plain;
  given.input_dtype = given.output_dtype = dtype;
  const double u = dtype == TANDEM_FLOAT32   ? 1e-6
                   : dtype == TANDEM_FLOAT16 ? 1.0 / 2048
                                             : 1.0 / 256;
  for (const LayerSetup& each : in_every_layout(given)) {
    SCOPED_TRACE(each.type + " " + to_string(shape) + " " + dtype_name(dtype) + " " +
                 layout_text(each));
    LayerRun expected(on_cpu), actual(each);
    const std::vector<PlainTensor> y = expected.forward();
    expect_close(actual.forward(), y, u + 5e-6, "output ");
    std::vector<PlainTensor> dy;
    for (unsigned i = 0; i < y.size(); ++i) {
      dy.push_back(rounded_to(dtype, random_tensor(y[i].shape, 40 + i)));
    }
    expect_close(actual.backward_data(dy), expected.backward_data(dy), c.rounds * u + 1e-5,
                 "input gradient ");
    if (c.channel_weights == 0 || c.type == "BatchNorm") continue;
    const std::vector<PlainTensor> dw = expected.backward_weights(dy);
    expect_close(actual.backward_weights(dy), dw, 1e-4, "weight gradient ");
    expect_close(actual.backward_weights(dy, dw), expected.backward_weights(dy, dw), 1e-4,
                 "sum of weight gradients ");
  }
}

class Vectors : public testing::TestWithParam<int32_t> {
 protected:
  static void compare(const std::vector<Case>& cases, const std::vector<Shape>& shapes) {
    if (kernels_run_on_a_cpu()) GTEST_SKIP() << "the cpu's kernels are compared with themselves";
    for (const Case& c : cases) {
      for (const Shape& shape : shapes) compare_with_the_cpu(c, shape, GetParam());
    }
  }
};

// 63 and 65 pixels: vectors contain pixels of two channels.
const std::vector<Shape> images{{2, 16, 7, 9}, {3, 24, 5, 13}, {2, 12, 4, 6}, {1, 264, 3, 3}};

TEST_P(Vectors, OfElements) {
  compare({{"ReLU"},
           {.type = "Sigmoid", .rounds = 3},
           {"GELU"},
           {"Dropout"},
           {.type = "Split", .outputs = 3},
           {.type = "Eltwise", .inputs = 2},
           {.type = "Eltwise", .parameters = {{"operation", "MAX"}}, .inputs = 3},
           {.type = "Eltwise",
            .parameters = {{"coeff", "1"}, {"coeff", "-2"}, {"coeff", "0.5"}},
            .inputs = 3},
           {.type = "Concat", .inputs = 2},
           {.type = "Concat", .parameters = {{"axis", "2"}}, .inputs = 2}},
          images);
}

TEST_P(Vectors, WithValuesOfChannels) {
  compare({{.type = "Bias", .channel_weights = 1},
           {.type = "Scale", .parameters = {{"bias_term", "true"}}, .channel_weights = 2},
           {.type = "PReLU", .channel_weights = 1},
           {.type = "BatchNorm", .channel_weights = 3, .rounds = 3},
           {.type = "BatchNormScale", .channel_weights = 5, .rounds = 3}},
          images);
}

TEST_P(Vectors, OfPooledChannels) {
  const auto pooling = [](const char* how, const char* kernel, const char* stride,
                          const char* pad) {
    return Case{"Pooling",
                {{"pool", how}, {"kernel_size", kernel}, {"stride", stride}, {"pad", pad}}};
  };
  compare(
      {pooling("MAX", "2", "2", "0"), pooling("MAX", "3", "2", "0"), pooling("MAX", "3", "1", "1"),
       pooling("MAX", "3", "2", "1"), pooling("MAX", "2", "3", "0"), pooling("MAX", "3", "1", "2"),
       pooling("AVE", "3", "2", "1"), pooling("AVE", "2", "1", "0")},
      {{2, 16, 7, 9}, {2, 12, 6, 5}, {1, 5, 8, 8}});
  compare({pooling("MAX", "4", "2", "1"), pooling("MAX", "5", "1", "2"),
           pooling("AVE", "5", "3", "0"), pooling("AVE", "7", "1", "0")},
          {{2, 16, 7, 9}, {2, 6, 7, 8}});
}

TEST_P(Vectors, WithNeighboringChannels) {
  const auto lrn = [](const char* size, const char* beta) {
    return Case{"LRN", {{"local_size", size}, {"alpha", "0.7"}, {"beta", beta}, {"k", "1.3"}}};
  };
  compare({lrn("5", "0.75"), lrn("5", "0.6"), lrn("3", "0.75")},
          {{2, 16, 5, 3}, {2, 8, 1, 7}, {1, 4, 3, 3}, {1, 3, 3, 3}, {2, 96, 3, 2}, {1, 70, 2, 2}});
}

TEST_P(Vectors, OfColors) {
  const uint32_t known = layer_registry().kernel("Reorder", kernel_device().kind()).dtypes;
  if ((known >> GetParam() & 1U) == 0)
    GTEST_SKIP() << "no kernel of this device supports the dtype";
  for (const Shape& shape : {Shape{2, 3, 4, 6}, {3, 3, 5, 5}, {1, 3, 1, 1}, {2, 2, 4, 4}}) {
    LayerSetup setup{.type = "Reorder", .inputs = {random_tensor(shape, 1)}};
    setup.output_layout = TANDEM_NHWC;
    setup.output_dtype = GetParam();
    SCOPED_TRACE(to_string(shape));
    EXPECT_EQ(LayerRun(setup).forward()[0].values, rounded_to(GetParam(), setup.inputs[0]).values);
  }
}

INSTANTIATE_TEST_SUITE_P(Dtypes, Vectors,
                         testing::Values(TANDEM_FLOAT32, TANDEM_BFLOAT16, TANDEM_FLOAT16),
                         [](const auto& info) { return dtype_name(info.param); });

}  // namespace
}  // namespace tandem::test
