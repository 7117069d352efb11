// Weight gradients by products of taps, compared with sums in float64.
#include <gmock/gmock.h>

#include "tests/layers/convolution_sums.h"
#include "tests/support/layer_test.h"

namespace tandem::test {
namespace {

struct TapCase {
  Shape input;
  int64_t outputs, kernel, stride = 1, pad = 0, dilation = 1, group = 1;
  int32_t layout = TANDEM_NCHW8C, output_layout = TANDEM_NCHW8C;
  bool bias = true;
};

TapCase first_layer(TapCase c) {
  c.layout = TANDEM_NCHW;
  return c;
}

TapCase in_nhwc(TapCase c) {
  c.layout = c.output_layout = TANDEM_NHWC;
  return c;
}

LayerSetup tap_setup(const TapCase& c) {
  LayerSetup setup{
      .type = "Convolution",
      .parameters = {{"num_output", std::to_string(c.outputs)},
                     {"kernel_size", std::to_string(c.kernel)},
                     {"stride", std::to_string(c.stride)},
                     {"pad", std::to_string(c.pad)},
                     {"dilation", std::to_string(c.dilation)},
                     {"group", std::to_string(c.group)},
                     {"algorithm", "DIRECT"},
                     {"bias_term", c.bias ? "true" : "false"}},
      .inputs = {random_tensor(c.input, 1)},
      .weights = {random_tensor({c.outputs, c.input.c / c.group, c.kernel, c.kernel}, 2)},
      .input_layout = c.layout,
      .output_layout = c.output_layout};
  if (c.bias) setup.weights.push_back(random_tensor({c.outputs, 1, 1, 1}, 3));
  return setup;
}

bool takes_taps(const LayerSetup& setup) {
  return LayerRun(setup).algorithm().find("products of taps") != std::string::npos;
}

class TapGradient : public testing::Test {
 protected:
  void SetUp() override {
    if (!takes_taps(tap_setup(first_layer({{1, 3, 32, 32}, 32, 5})))) {
      GTEST_SKIP() << "with this instruction set, oneDNN's kernels are used";
    }
  }
};

void expect_taps_near_float64(const TapCase& c) {
  SCOPED_TRACE(testing::Message() << "input " << c.input.n << "x" << c.input.c << "x" << c.input.h
                                  << "x" << c.input.w << ", outputs " << c.outputs << ", kernel "
                                  << c.kernel << ", stride " << c.stride << ", pad " << c.pad
                                  << ", dilation " << c.dilation << ", group " << c.group
                                  << ", layout " << c.layout);
  const LayerSetup setup = tap_setup(c);
  LayerRun run(setup);
  EXPECT_THAT(run.algorithm(), testing::HasSubstr("products of taps"));
  expect_as_sums(setup, run, c.group, c.pad, c.stride, c.dilation, {2e-6, 2e-6, 2e-6, 2e-6});
}

TEST_F(TapGradient, AgreesWithSumsInFloat64InFirstLayers) {
  expect_taps_near_float64(first_layer({{3, 3, 32, 32}, 32, 5, 1, 2}));
  expect_taps_near_float64(first_layer({{2, 3, 37, 41}, 64, 7, 2, 3}));
  expect_taps_near_float64(first_layer({{2, 3, 37, 41}, 96, 7, 2}));
  expect_taps_near_float64(first_layer(
      {.input = {2, 3, 33, 30}, .outputs = 16, .kernel = 3, .stride = 2, .bias = false}));
  expect_taps_near_float64(first_layer({{2, 1, 9, 300}, 40, 3}));
}

TEST_F(TapGradient, AgreesWithSumsInFloat64ForKernelsOfOnePixel) {
  expect_taps_near_float64({{3, 32, 14, 14}, 64, 1});
  expect_taps_near_float64({{9, 16, 7, 7}, 40, 1});  // parts of several images
  expect_taps_near_float64({{1, 16, 56, 56}, 16, 1});
  expect_taps_near_float64({{2, 16, 13, 61}, 24, 1});  // 13 * 61 pixels in rows of 61
  expect_taps_near_float64(in_nhwc({{3, 21, 14, 14}, 64, 1}));
  expect_taps_near_float64({{3, 16, 15, 15}, 32, 1, 2});
}

TEST_F(TapGradient, SupportsWindowsWithPadding) {
  expect_taps_near_float64({{3, 16, 15, 14}, 32, 3, 2, 1});
  expect_taps_near_float64({{2, 16, 11, 13}, 16, 3, 1, 3, 3});
  expect_taps_near_float64(in_nhwc({{2, 5, 11, 13}, 16, 3, 1, 5, 2}));
  expect_taps_near_float64({{2, 8, 11, 5}, 16, 3, 2, 9});  // rows and pixels of padding only
  expect_taps_near_float64(in_nhwc({{5, 16, 23, 19}, 24, 2, 4, 1}));
}

TEST_F(TapGradient, SupportsGroups) {
  expect_taps_near_float64(
      {.input = {3, 32, 15, 14}, .outputs = 48, .kernel = 3, .stride = 2, .pad = 1, .group = 2});
  expect_taps_near_float64(
      in_nhwc({.input = {8, 12, 9, 9}, .outputs = 48, .kernel = 3, .stride = 2, .group = 3}));
}

TEST_F(TapGradient, IsNotUsedForVeryFewPixelsOrForFewTapsWithPadding) {
  EXPECT_FALSE(takes_taps(tap_setup(first_layer({{2, 3, 33, 30}, 16, 3, 2, 1}))));
  EXPECT_FALSE(takes_taps(tap_setup({{2, 16, 7, 7}, 16, 1})));
  EXPECT_TRUE(takes_taps(tap_setup({{3, 16, 7, 7}, 16, 1})));
}

TEST_F(TapGradient, AccumulatesOnRequest) {
  expect_added_weight_gradients(tap_setup(first_layer({{3, 3, 20, 20}, 16, 3, 2})));
}

TEST_F(TapGradient, HasTheSameBitsForEveryNumberOfThreads) {
  for (const TapCase& c :
       {first_layer({{5, 3, 40, 40}, 56, 5, 1, 2}), TapCase{{5, 64, 9, 9}, 40, 1}}) {
    LayerSetup setup = tap_setup(c);
    LayerRun first(setup);
    const PlainTensor dy = random_tensor(first.forward()[0].shape, 4);
    const std::vector<PlainTensor> dw = first.backward_weights({dy});
    for (const int32_t threads : {1, 2, 3, 7}) {
      setup.threads = threads;
      const std::vector<PlainTensor> gradients = LayerRun(setup).backward_weights({dy});
      for (size_t i = 0; i < 2; ++i) EXPECT_EQ(gradients[i].values, dw[i].values) << threads;
    }
  }
}

// oneDNN has no direct kernel for these, also with AVX-512, whose blocks have 16 channels.
TEST(DilatedConvolution, HasWeightGradientsByProductsOfTapsOnACpu) {
  const LayerSetup blocks_of_8 = tap_setup({{2, 32, 20, 20}, 32, 3, 1, 2, 2});
  const LayerSetup blocks_of_16 =
      tap_setup({{2, 32, 20, 20}, 32, 3, 1, 2, 2, 1, TANDEM_NCHW16C, TANDEM_NCHW16C});
  if (!kernels_run_on_a_cpu()) GTEST_SKIP() << "for kernels of a cpu";
  const std::string algorithm = LayerRun(tap_setup({{1, 8, 8, 8}, 8, 3})).algorithm();
  if (algorithm.find("sse41") != std::string::npos) {
    GTEST_SKIP() << "with this instruction set, oneDNN's kernels are used";
  }
  if (algorithm.find("vectors of channels") != std::string::npos) {
    GTEST_SKIP() << "without oneDNN's kernels, one kernel of our own computes all passes";
  }
  EXPECT_NE(takes_taps(blocks_of_8), takes_taps(blocks_of_16));
  for (const TapCase& c : {in_nhwc({{2, 12, 24, 22}, 48, 5, 2, 4, 2}),
                           in_nhwc({{2, 32, 20, 20}, 32, 3, 1, 2, 2, 2})}) {
    expect_taps_near_float64(c);
  }
}

}  // namespace
}  // namespace tandem::test
