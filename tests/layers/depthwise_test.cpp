// Depthwise convolutions by vectors of channels, compared with sums in float64.
#include <gmock/gmock.h>

#include "tests/layers/convolution_sums.h"
#include "tests/layers/thread_bits.h"
#include "tests/support/cpu_precision.h"
#include "tests/support/layer_test.h"

namespace tandem::test {
namespace {

struct DepthwiseCase {
  Shape input;
  int64_t kernel = 3, stride = 1, pad = 1, dilation = 1;
  bool bias = true;
};

LayerSetup depthwise(const DepthwiseCase& c, int32_t layout) {
  const std::string channels = std::to_string(c.input.c);
  LayerSetup setup{.type = "Convolution",
                   .parameters = {{"num_output", channels},
                                  {"group", channels},
                                  {"kernel_size", std::to_string(c.kernel)},
                                  {"stride", std::to_string(c.stride)},
                                  {"pad", std::to_string(c.pad)},
                                  {"dilation", std::to_string(c.dilation)},
                                  {"bias_term", c.bias ? "true" : "false"}},
                   .inputs = {random_tensor(c.input, 1)},
                   .weights = {random_tensor({c.input.c, 1, c.kernel, c.kernel}, 2)},
                   .input_layout = layout,
                   .output_layout = layout};
  if (c.bias) setup.weights.push_back(random_tensor({c.input.c, 1, 1, 1}, 3));
  return setup;
}

class Depthwise : public testing::Test {
 protected:
  void SetUp() override {
    LayerRun run(depthwise({{2, 16, 23, 19}, 4, 1, 3, 4}, TANDEM_NHWC));
    if (run.algorithm().find("vectors of channels") == std::string::npos) {
      GTEST_SKIP() << "for kernels of a cpu";
    }
  }
};

void expect_depthwise_near_float64(const DepthwiseCase& c, int32_t layout) {
  SCOPED_TRACE(testing::Message() << "input " << c.input.n << "x" << c.input.c << "x" << c.input.h
                                  << "x" << c.input.w << ", kernel " << c.kernel << ", stride "
                                  << c.stride << ", pad " << c.pad << ", dilation " << c.dilation
                                  << ", layout " << layout);
  const LayerSetup setup = depthwise(c, layout);
  LayerRun run(setup);
  // With AVX-512 oneDNN's kernels for depthwise convolutions are used where it has some.
  EXPECT_THAT(run.algorithm(),
              testing::AnyOf(testing::HasSubstr("vectors of channels"), testing::HasSubstr("_dw")));
  expect_as_sums(setup, run, c.input.c, c.pad, c.stride, c.dilation);
}

TEST_F(Depthwise, AgreesWithSumsInFloat64) {
  for (const int32_t layout : {TANDEM_NHWC, TANDEM_NCHW8C, TANDEM_NCHW16C}) {
    for (const DepthwiseCase& c :
         {DepthwiseCase{{3, 32, 14, 14}}, DepthwiseCase{{2, 32, 15, 14}, 3, 2, 1},
          DepthwiseCase{{2, 32, 14, 9}, 3, 2, 0}, DepthwiseCase{{2, 32, 11, 13}, 5, 1, 2, 1, false},
          DepthwiseCase{{2, 16, 30, 7}, 7, 3, 3}, DepthwiseCase{{2, 16, 23, 19}, 4, 1, 3, 4},
          DepthwiseCase{{2, 16, 21, 21}, 3, 2, 4, 4}}) {
      expect_depthwise_near_float64(c, layout);
    }
  }
}

// Pixels without any tap, windows of padding only, rows that no window has in full.
TEST_F(Depthwise, SupportsAnyWindow) {
  expect_depthwise_near_float64({{2, 16, 9, 9}, 1, 3, 0}, TANDEM_NCHW8C);
  expect_depthwise_near_float64({{2, 16, 3, 3}, 11, 1, 10, 2}, TANDEM_NCHW8C);
  expect_depthwise_near_float64({{2, 16, 5, 4}, 3, 2, 9}, TANDEM_NHWC);
  expect_depthwise_near_float64({{2, 16, 2, 2}, 2, 4, 0}, TANDEM_NHWC);
}

// The last vector of a pixel overlaps the one before it.
TEST_F(Depthwise, SupportsChannelsThatVectorsDoNotDivide) {
  for (const int64_t channels : {9, 12, 15, 20, 100}) {
    expect_depthwise_near_float64({{2, channels, 8, 8}}, TANDEM_NHWC);
  }
}

TEST_F(Depthwise, AccumulatesWeightGradientsOnRequest) {
  expect_added_weight_gradients(depthwise({{3, 20, 9, 9}}, TANDEM_NHWC));
}

TEST_F(Depthwise, HasTheSameBitsForEveryNumberOfThreads) {
  expect_same_bits_for_every_number_of_threads(
      depthwise({{9, 48, 33, 33}, 3, 2, 1}, TANDEM_NCHW8C));
}

// Some versions of oneDNN take others by themselves, which take over twenty times as long.
TEST_F(Depthwise, InBfloat16HasOneDnnsKernelsForIt) {
  if (const std::string reason = no_bfloat16(); !reason.empty()) GTEST_SKIP() << reason;
  for (const int64_t stride : {1, 2}) {
    LayerSetup setup = depthwise({{8, 128, 28, 28}, 3, stride}, TANDEM_NHWC);
    setup.input_dtype = setup.output_dtype = TANDEM_BFLOAT16;
    const std::string algorithm = LayerRun(setup).algorithm();
    for (const char* pass : {"forward", "backward data", "backward weights"}) {
      EXPECT_THAT(algorithm, testing::ContainsRegex(std::string(pass) + " [a-z]*_dw")) << stride;
    }
  }
}

}  // namespace
}  // namespace tandem::test
