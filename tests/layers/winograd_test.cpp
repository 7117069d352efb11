// Convolutions by Winograd's algorithm, compared with sums in float64 and with direct convolutions.
#include <gmock/gmock.h>

#include <cstdlib>

#include "tests/layers/convolution_sums.h"
#include "tests/layers/thread_bits.h"
#include "tests/support/computable.h"
#include "tests/support/emulation.h"
#include "tests/support/layer_test.h"

namespace tandem::test {
namespace {

// A convolution with a square kernel and a bias.
struct WinogradCase {
  Shape input;
  int64_t outputs = 32, group = 1, pad = 1, kernel = 3, stride = 1, dilation = 1;
  int32_t layout = TANDEM_NHWC;
  int32_t output_layout = -1;  // -1: as the input
};

LayerSetup winograd_setup(const WinogradCase& c) {
  return {.type = "Convolution",
          .parameters = {{"num_output", std::to_string(c.outputs)},
                         {"kernel_size", std::to_string(c.kernel)},
                         {"pad", std::to_string(c.pad)},
                         {"stride", std::to_string(c.stride)},
                         {"dilation", std::to_string(c.dilation)},
                         {"group", std::to_string(c.group)}},
          .inputs = {random_tensor(c.input, 1)},
          .weights = {random_tensor({c.outputs, c.input.c / c.group, c.kernel, c.kernel}, 2),
                      random_tensor({c.outputs, 1, 1, 1}, 3)},
          .input_layout = c.layout,
          .output_layout = c.output_layout < 0 ? c.layout : c.output_layout};
}

bool is_winograd(const LayerSetup& setup) {
  return LayerRun(setup).algorithm().find("winograd") != std::string::npos;
}

// 3e-6 of the largest value. Sums over the batch are compared less strictly, and least with the
// larger numbers of F(2x2, 5x5).
void expect_winograd_near_float64(const WinogradCase& c) {
  SCOPED_TRACE(testing::Message() << "input " << c.input.n << "x" << c.input.c << "x" << c.input.h
                                  << "x" << c.input.w << ", outputs " << c.outputs << ", group "
                                  << c.group << ", pad " << c.pad << ", kernel " << c.kernel
                                  << ", stride " << c.stride << ", dilation " << c.dilation
                                  << ", layout " << c.layout);
  const LayerSetup setup = winograd_setup(c);
  LayerRun run(setup);
  EXPECT_THAT(run.algorithm(), testing::HasSubstr("winograd"));
  expect_as_sums(setup, run, c.group, c.pad, c.stride, c.dilation,
                 {3e-6, 3e-6, c.kernel == 5 ? 1e-5 : 5e-6, 2e-6});
}

TEST(Winograd, AgreesWithSumsInFloat64InEveryLayout) {
  for (const int32_t layout : {TANDEM_NCHW, TANDEM_NHWC, TANDEM_NCHW8C, TANDEM_NCHW16C}) {
    expect_winograd_near_float64({.input = {4, 32, 16, 16}, .outputs = 48, .layout = layout});
    expect_winograd_near_float64({.input = {8, 32, 8, 8}, .pad = 2, .kernel = 5, .layout = layout});
  }
}

TEST(Winograd, SupportsEveryPadding) {
  for (const int64_t pad : {0, 1, 2, 3}) {
    expect_winograd_near_float64({.input = {5, 16, 18, 18}, .outputs = 16, .pad = pad});
    expect_winograd_near_float64(
        {.input = {5, 16, 12, 12}, .outputs = 16, .pad = pad, .kernel = 5});
  }
}

TEST(Winograd, SupportsSizesThatTilesDoNotDivide) {
  expect_winograd_near_float64({.input = {5, 16, 17, 15}, .outputs = 16});
  expect_winograd_near_float64({.input = {64, 16, 1, 9}, .outputs = 16});
  expect_winograd_near_float64({.input = {9, 16, 7, 31}, .outputs = 16, .pad = 2, .kernel = 5});
}

TEST(Winograd, SupportsChannelsThatVectorsDoNotDivide) {
  for (const int32_t layout : {TANDEM_NCHW, TANDEM_NHWC}) {
    expect_winograd_near_float64({.input = {4, 21, 16, 16}, .outputs = 37, .layout = layout});
    expect_winograd_near_float64(
        {.input = {4, 42, 16, 16}, .outputs = 38, .group = 2, .layout = layout});
  }
}

// Images that the dilation divides or not, paddings that it divides or not, and one larger than the
// dilated kernel.
TEST(Winograd, SupportsDilations) {
  for (const int32_t layout : {TANDEM_NCHW, TANDEM_NHWC, TANDEM_NCHW8C, TANDEM_NCHW16C}) {
    for (const int64_t pad : {0, 1, 2, 3, 4}) {
      expect_winograd_near_float64(
          {.input = {3, 16, 19, 24}, .pad = pad, .dilation = 2, .layout = layout});
    }
    expect_winograd_near_float64(
        {.input = {2, 16, 12, 12}, .pad = 6, .dilation = 2, .layout = layout});
    expect_winograd_near_float64(
        {.input = {2, 32, 24, 24}, .pad = 12, .dilation = 12, .layout = layout});
    expect_winograd_near_float64({.input = {2, 64, 33, 30},
                                  .group = 2,
                                  .pad = 4,
                                  .dilation = 3,
                                  .layout = layout,
                                  .output_layout = TANDEM_NHWC});
    expect_winograd_near_float64({.input = {2, 16, 24, 26},
                                  .outputs = 16,
                                  .pad = 8,
                                  .kernel = 5,
                                  .dilation = 4,
                                  .layout = layout});
  }
  expect_winograd_near_float64(
      {.input = {2, 42, 33, 30}, .outputs = 38, .group = 2, .pad = 4, .dilation = 3});
}

TEST(Winograd, IsNotUsedWhereADilationLeavesTilesEmpty) {
  for (const int64_t dilation : {12, 18, 1000, 1000000}) {
    EXPECT_FALSE(is_winograd(
        winograd_setup({.input = {2, 32, 14, 14}, .pad = dilation, .dilation = dilation})))
        << dilation;
  }
}

TEST(Winograd, SupportsGroups) {
  for (const int32_t layout : {TANDEM_NHWC, TANDEM_NCHW8C, TANDEM_NCHW16C}) {
    expect_winograd_near_float64(
        {.input = {4, 64, 17, 15}, .outputs = 32, .group = 2, .layout = layout});
  }
}

// A first layer: the kernel has no gradient by the input.
void expect_as_in_float64_folded(const WinogradCase& c) {
  SCOPED_TRACE(testing::Message() << "input " << c.input.n << "x" << c.input.c << "x" << c.input.h
                                  << "x" << c.input.w << ", outputs " << c.outputs << ", pad "
                                  << c.pad << ", kernel " << c.kernel << ", stride " << c.stride
                                  << ", layouts " << c.layout << " to " << c.output_layout);
  LayerSetup setup = winograd_setup(c);
  setup.flags &= ~TANDEM_WANTS_BACKWARD_DATA;
  LayerRun run(setup);
  EXPECT_THAT(run.algorithm(), testing::HasSubstr("folded"));
  expect_as_sums(setup, run, c.group, c.pad, c.stride, 1, {3e-6, 3e-6, 5e-6, 2e-6});
}

TEST(Winograd, FoldsTheStrideOfAFirstLayer) {
  for (const int32_t layout : {TANDEM_NCHW, TANDEM_NCHW8C, TANDEM_NCHW16C, TANDEM_NHWC}) {
    expect_as_in_float64_folded({.input = {4, 3, 67, 67},
                                 .pad = 0,
                                 .kernel = 11,
                                 .stride = 4,
                                 .layout = TANDEM_NCHW,
                                 .output_layout = layout});
    expect_as_in_float64_folded({.input = {6, 4, 33, 31},
                                 .pad = 2,
                                 .kernel = 6,
                                 .stride = 2,
                                 .layout = TANDEM_NCHW,
                                 .output_layout = layout});
  }
  expect_as_in_float64_folded(
      {.input = {8, 3, 61, 62}, .outputs = 20, .pad = 5, .kernel = 10, .stride = 4});
  for (const int32_t layout : {TANDEM_NCHW, TANDEM_NHWC, TANDEM_NCHW8C}) {
    expect_as_in_float64_folded({.input = {6, 8, 32, 32},
                                 .group = 2,
                                 .pad = 3,
                                 .kernel = 6,
                                 .stride = 2,
                                 .layout = layout,
                                 .output_layout = TANDEM_NHWC});
  }
  expect_as_in_float64_folded({.input = {4, 3, 61, 61}, .pad = 13, .kernel = 12, .stride = 4});
}

TEST(Winograd, FoldsOnlyWhereManyProductsAreSaved) {
  const auto is_folded = [](const WinogradCase& c, uint32_t without) {
    LayerSetup setup = winograd_setup(c);
    setup.flags &= ~without;
    return is_winograd(setup);
  };
  const uint32_t first_layer = TANDEM_WANTS_BACKWARD_DATA;
  const WinogradCase alexnet{.input = {4, 3, 67, 67}, .pad = 0, .kernel = 11, .stride = 4};
  EXPECT_TRUE(is_folded(alexnet, first_layer));
  EXPECT_FALSE(is_folded(alexnet, 0)) << "its gradient by the input is wanted";
  EXPECT_FALSE(
      is_folded({.input = {4, 3, 64, 64}, .pad = 3, .kernel = 7, .stride = 2}, first_layer));
  EXPECT_FALSE(is_folded({.input = {4, 3, 64, 64}, .kernel = 3, .stride = 2}, first_layer));
}

// The root of the mean square of a - b, over that of b.
double relative_error(const std::vector<float>& a, const std::vector<double>& b) {
  double error = 0, size = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = static_cast<double>(a[i]) - b[i];
    error += difference * difference;
    size += b[i] * b[i];
  }
  return std::sqrt(error / size);
}

// Of tensors and weights that bfloat16 can hold. A CPU that multiplies bfloat16 rounds transformed
// values to it, which the inverse transform enlarges: `error` of the size of a result, root of mean
// squares. Others round results only.
void expect_rounded(const WinogradCase& c, double error) {
  SCOPED_TRACE(testing::Message() << "input " << c.input.n << "x" << c.input.c << "x" << c.input.h
                                  << "x" << c.input.w << ", outputs " << c.outputs << ", group "
                                  << c.group << ", kernel " << c.kernel << ", layout " << c.layout);
  LayerSetup half = winograd_setup(c);
  for (PlainTensor& tensor : half.inputs) tensor = rounded_to(TANDEM_BFLOAT16, tensor);
  for (PlainTensor& tensor : half.weights) tensor = rounded_to(TANDEM_BFLOAT16, tensor);
  half.input_dtype = half.output_dtype = TANDEM_BFLOAT16;
  if (c.stride > 1) half.flags &= ~TANDEM_WANTS_BACKWARD_DATA;
  LayerRun run(half);
  EXPECT_THAT(run.algorithm(), testing::HasSubstr("winograd"));
  const bool rounds = run.algorithm().find("products in bfloat16") != std::string::npos;
  constexpr double once = 0.002;
  const auto expect = [&](const char* result, const std::vector<float>& actual,
                          const std::vector<double>& sum, double most) {
    const std::string algorithm = algorithm_of("forward", run.algorithm());
    const double found = relative_error(actual, sum);
    EXPECT_LE(found, most) << result;
    record_error("bfloat16, root of mean squares: " + algorithm + " " + result, found);
  };
  const PlainTensor y = run.forward()[0];
  const PlainTensor dy = rounded_to(TANDEM_BFLOAT16, random_tensor(y.shape, 4));
  const ConvolutionSums sums(half, dy, c.group, c.pad, c.stride, c.dilation);
  expect("output", y.values, sums.y, rounds ? error : once);
  if (c.stride == 1) {
    expect("input_gradient", run.backward_data({dy})[0].values, sums.dx, rounds ? error : once);
  }
  const std::vector<PlainTensor> gradients = run.backward_weights({dy});
  expect("weight_gradient", gradients[0].values, sums.dw, rounds ? error : 5e-6);
  expect("bias_gradient", gradients[1].values, sums.db, 2e-6);
}

class WinogradBfloat16 : public testing::Test {
 protected:
  void SetUp() override {
    const std::string reason = no_products(TANDEM_BFLOAT16);
    if (!reason.empty()) GTEST_SKIP() << reason;
    LayerSetup setup = winograd_setup({.input = {4, 128, 28, 28}, .outputs = 128});
    setup.input_dtype = setup.output_dtype = TANDEM_BFLOAT16;
    if (!is_winograd(setup)) GTEST_SKIP() << "this CPU has tiles of matrices, which are faster";
  }
  static constexpr double four = 0.013, five = 0.015;  // of F(4x4, 3x3), of F(2x2, 5x5)
};

TEST_F(WinogradBfloat16, AgreesWithSumsInFloat64InEveryLayout) {
  for (const int32_t layout : {TANDEM_NCHW, TANDEM_NHWC, TANDEM_NCHW8C, TANDEM_NCHW16C}) {
    expect_rounded({.input = {4, 64, 16, 16}, .outputs = 64, .layout = layout}, four);
    expect_rounded({.input = {4, 64, 16, 16}, .outputs = 64, .group = 2, .layout = layout}, four);
    expect_rounded({.input = {8, 64, 8, 8}, .outputs = 64, .pad = 2, .kernel = 5, .layout = layout},
                   five);
  }
}

TEST_F(WinogradBfloat16, SupportsChannelsAndSizesThatVectorsAndTilesDoNotDivide) {
  for (const int32_t layout : {TANDEM_NCHW, TANDEM_NHWC}) {
    expect_rounded({.input = {4, 63, 15, 17}, .outputs = 61, .layout = layout}, four);
  }
  expect_rounded({.input = {5, 61, 13, 15}, .outputs = 93, .pad = 2, .kernel = 5}, five);
}

TEST_F(WinogradBfloat16, FoldsTheStrideOfAFirstLayer) {
  expect_rounded({.input = {4, 3, 67, 67},
                  .pad = 0,
                  .kernel = 11,
                  .stride = 4,
                  .layout = TANDEM_NCHW,
                  .output_layout = TANDEM_NHWC},
                 four);
}

TEST_F(WinogradBfloat16, HasTheSameBitsForEveryNumberOfThreads) {
  LayerSetup setup = winograd_setup({.input = {21, 48, 33, 33}, .outputs = 72});
  setup.input_dtype = setup.output_dtype = TANDEM_BFLOAT16;
  const PlainTensor y = LayerRun(setup).forward()[0], dy = random_tensor(y.shape, 4);
  const std::vector<PlainTensor> dw = LayerRun(setup).backward_weights({dy});
  for (const int32_t threads : {1, 3}) {
    setup.threads = threads;
    LayerRun run(setup);
    EXPECT_EQ(run.forward()[0].values, y.values) << threads;
    EXPECT_EQ(run.backward_weights({dy})[0].values, dw[0].values) << threads;
  }
}

TEST_F(WinogradBfloat16, IsNotUsedWhereTransformsCostMoreThanProductsSave) {
  const auto is_used = [](const WinogradCase& c) {
    LayerSetup setup = winograd_setup(c);
    setup.input_dtype = setup.output_dtype = TANDEM_BFLOAT16;
    return is_winograd(setup);
  };
  EXPECT_TRUE(is_used({.input = {8, 64, 28, 28}, .outputs = 64}));
  LayerSetup any = winograd_setup({.input = {8, 64, 28, 28}, .outputs = 64});
  any.input_dtype = any.output_dtype = TANDEM_BFLOAT16;
  if (LayerRun(any).algorithm().find("products in bfloat16") == std::string::npos) {
    GTEST_SKIP() << "this CPU does not multiply bfloat16, so float32 is always faster";
  }
  EXPECT_FALSE(is_used({.input = {8, 16, 28, 28}, .outputs = 32, .pad = 2, .kernel = 5}));
  EXPECT_FALSE(is_used({.input = {32, 32, 7, 7}, .outputs = 128, .pad = 2, .kernel = 5}));
}

// Where larger tiles would be mostly empty.
TEST(Winograd, ChoosesTheTilesByTheSizeOfTheImage) {
  const auto algorithm = [](const WinogradCase& c) {
    return LayerRun(winograd_setup(c)).algorithm();
  };
  EXPECT_THAT(algorithm({.input = {64, 16, 13, 13}}), testing::HasSubstr("F(4x4, 3x3)"));
  EXPECT_THAT(algorithm({.input = {64, 16, 2, 2}}), testing::HasSubstr("F(2x2, 3x3)"));
  EXPECT_THAT(algorithm({.input = {64, 16, 1, 1}}), testing::HasSubstr("F(1x1, 3x3)"));
  EXPECT_THAT(algorithm({.input = {64, 16, 8, 8}, .pad = 2, .kernel = 5}),
              testing::HasSubstr("F(2x2, 5x5)"));
  for (const int64_t size : {1, 2, 3})
    expect_winograd_near_float64({.input = {64, 16, size, size}});
}

// Memory of exactly the size that the kernel asked for, with guards.
TEST(Winograd, AgreesWithSumsInFloat64WithoutTraining) {
  for (const int64_t group : {1, 2}) {
    LayerSetup setup = winograd_setup({.input = {4, 32, 16, 16}, .group = group});
    setup.phase = TANDEM_TEST;
    setup.flags = 0;
    LayerRun run(setup);
    const PlainTensor y = run.forward()[0];
    const ConvolutionSums sums(setup, y, group, 1);
    expect_as_sum(algorithm_of("forward", run.algorithm()), "output", y.values, sums.y, 3e-6);
    EXPECT_EQ(run.forward()[0].values, y.values) << group << " groups";
  }
}

// Enough tiles for several parts, in every pass.
TEST(Winograd, DividesALargeBatchIntoParts) {
  TANDEM_SKIP_IF_EMULATED("22 billion products, and Winograd's");
  LayerSetup setup = winograd_setup({.input = {21, 64, 56, 56}, .outputs = 192});
  LayerRun parts(setup);
  EXPECT_LE(parts.report().scratch_bytes, int64_t{64} << 20);
  setup.parameters.emplace_back("algorithm", "DIRECT");
  LayerRun direct(setup);
  EXPECT_THAT(direct.algorithm(), testing::Not(testing::HasSubstr("winograd")));
  const PlainTensor y = direct.forward()[0], dy = random_tensor(y.shape, 4);
  EXPECT_LE(relative_difference(parts.forward()[0].values, y.values), 5e-6);
  EXPECT_LE(relative_difference(parts.backward_data({dy})[0].values,
                                direct.backward_data({dy})[0].values),
            5e-6);
  const std::vector<PlainTensor> expected = direct.backward_weights({dy});
  const std::vector<PlainTensor> gradients = parts.backward_weights({dy});
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_LE(relative_difference(gradients[i].values, expected[i].values), 2e-5);
  }
}

TEST(Winograd, AccumulatesWeightGradientsOnRequest) {
  expect_added_weight_gradients(winograd_setup({.input = {4, 32, 16, 16}, .group = 2}), 1e-6);
  expect_added_weight_gradients(
      winograd_setup({.input = {4, 32, 16, 16}, .group = 2, .pad = 2, .dilation = 2}), 1e-6);
}

TEST(Winograd, IsNotUsedForStridesOrVeryFewPixelsOrChannels) {
  EXPECT_FALSE(is_winograd(winograd_setup({.input = {4, 32, 16, 16}, .stride = 2})));
  EXPECT_FALSE(is_winograd(winograd_setup({.input = {4, 32, 16, 16}, .stride = 2, .dilation = 2})));
  EXPECT_FALSE(is_winograd(winograd_setup({.input = {1, 32, 8, 8}})));
  EXPECT_FALSE(is_winograd(winograd_setup({.input = {4, 3, 16, 16}})));
}

// CTest runs these tests with such caps too.
TEST(Winograd, UsesNoMoreInstructionsThanOneDnnMay) {
  const char* cap = std::getenv("ONEDNN_MAX_CPU_ISA");
  if (cap == nullptr) GTEST_SKIP() << "ONEDNN_MAX_CPU_ISA is not set";
  const std::string algorithm = LayerRun(winograd_setup({.input = {4, 32, 16, 16}})).algorithm();
  if (std::string(cap) == "AVX2" || std::string(cap) == "SSE41") {
    EXPECT_THAT(algorithm, testing::Not(testing::HasSubstr("AVX3")));
  }
  if (std::string(cap) == "SSE41") {
    EXPECT_THAT(algorithm, testing::Not(testing::HasSubstr("AVX")));
  }
}

TEST(Winograd, HasTheSameBitsForEveryNumberOfThreads) {
  expect_same_bits_for_every_number_of_threads(
      winograd_setup({.input = {21, 32, 33, 33}, .outputs = 40, .group = 2}));
  expect_same_bits_for_every_number_of_threads(
      winograd_setup({.input = {5, 32, 33, 33}, .outputs = 40, .pad = 3, .dilation = 3}));
}

}  // namespace
}  // namespace tandem::test
