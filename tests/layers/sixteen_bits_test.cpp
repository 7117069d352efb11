// Kernels in bfloat16 and float16 compared with the same kernels in float32, which
// reference_test.cpp and its neighbors compare with float64 to 1e-6. Inputs, output gradients and
// weights are numbers that the 16-bit dtype can hold, so that both kernels compute from the same
// numbers, in float32. What remains is the rounding of stored results to 8 or 11 significant bits:
// at most u = 2^-8 or 2^-11 of the result. So the bound for a tensor, as max |a - b| / max |b|, is
// u for every inexact rounding between the inputs and the result, and 1e-4 for sums in another
// order. Weight gradients are float32. They have roundings if the backward pass reads what the
// forward pass stored, and one more in a convolution on a GPU, since cuDNN writes them in the
// tensors' dtype.
#include <gtest/gtest.h>

#include "tests/support/computable.h"
#include "tests/support/reference_check.h"

namespace tandem::test {
namespace {

constexpr double order_of_sums = 1e-4;

// The number of roundings of each result.
struct Roundings {
  double output = 1, input_gradient = 1, weight_gradient = 0;
};

// The value for the kernels under test.
double by_device(double cpu, double gpu) {
  return kernels_run_on_a_cpu() ? cpu : gpu;
}

class SixteenBits : public testing::TestWithParam<int32_t> {
 protected:
  void SetUp() override {
    const uint32_t known = layer_registry().kernel("ReLU", kernel_device().kind()).dtypes;
    if ((known >> GetParam() & 1U) == 0)
      GTEST_SKIP() << "no kernel of this device supports the dtype";
    const std::string reason = not_computable(GetParam());
    if (!reason.empty()) GTEST_SKIP() << reason;
  }
  static double u() { return GetParam() == TANDEM_FLOAT16 ? 1.0 / 2048 : 1.0 / 256; }
  static float rounded(float value) { return rounded_to(GetParam(), value); }
  static PlainTensor rounded(const PlainTensor& tensor) { return rounded_to(GetParam(), tensor); }
  static LayerSetup rounded(LayerSetup setup) {
    for (PlainTensor& tensor : setup.inputs) tensor = rounded(tensor);
    for (PlainTensor& tensor : setup.weights) tensor = rounded(tensor);
    return setup;
  }
  static LayerSetup in_sixteen_bits(LayerSetup setup) {
    setup.input_dtype = setup.output_dtype = GetParam();
    return setup;
  }

  static void expect_rounded(const std::vector<PlainTensor>& actual,
                             const std::vector<PlainTensor>& expected, double roundings,
                             const std::string& what) {
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t i = 0; i < actual.size(); ++i) {
      if (expected[i].values.empty()) continue;
      const double error = relative_difference(actual[i].values, expected[i].values);
      EXPECT_LE(error, roundings * u() + order_of_sums) << what << i;
      record_error(dtype_name(GetParam()) + " " + what, error);
    }
  }

  // In every layout that the kernel offers for the dtype. A GPU's float32 kernel may not support
  // all of them, so it runs in the plain one.
  static void compare_with_float32(const LayerSetup& plain,
                                   const std::vector<PlainTensor>& gradients,
                                   const Roundings& roundings) {
    for (const LayerSetup& half : in_every_layout(in_sixteen_bits(plain))) {
      SCOPED_TRACE(half.type + " " + layout_text(half));
      LayerSetup whole = kernels_run_on_a_cpu() ? half : plain;
      whole.input_dtype = whole.output_dtype = TANDEM_FLOAT32;
      LayerRun actual(half), expected(whole);
      expect_rounded(actual.forward(), expected.forward(), roundings.output, "output");
      if (gradients.empty()) continue;
      if (has_data_gradient(actual.type())) {
        expect_rounded(actual.backward_data(gradients), expected.backward_data(gradients),
                       roundings.input_gradient, "input gradient ");
      }
      // With a slice of the inputs, only a part of the weight gradient is written.
      const bool trained = !half.weights.empty() && half.type != "BatchNorm" && half.input_end < 0;
      if (trained) {
        const std::vector<PlainTensor> first = expected.backward_weights(gradients);
        expect_rounded(actual.backward_weights(gradients), first, roundings.weight_gradient,
                       "weight gradient ");
        expect_rounded(actual.backward_weights(gradients, first),
                       expected.backward_weights(gradients, first), roundings.weight_gradient,
                       "weight gradient ");
      }
    }
  }

  static void expect_reference(const std::string& file, const std::string& type,
                               const Roundings& roundings = {}) {
    for (const ReferenceCase& reference : read_reference(file)) {
      SCOPED_TRACE(reference.name);
      LayerSetup setup{.type = type,
                       .parameters = reference.parameters,
                       .inputs = reference.all("input"),
                       .weights = reference.all("weight"),
                       .output_count = static_cast<uint32_t>(reference.all("output").size())};
      std::vector<PlainTensor> gradients;
      for (const PlainTensor& one : reference.all("output_gradient")) {
        gradients.push_back(rounded(one));
      }
      if (gradients.empty()) setup.flags = 0;
      compare_with_float32(rounded(setup), gradients, roundings);
    }
  }
};

// Kernels that use oneDNN on a cpu, which needs AVX-512 for bfloat16.
class SixteenBitProducts : public SixteenBits {
 protected:
  void SetUp() override {
    SixteenBits::SetUp();
    if (IsSkipped()) return;
    const std::string reason = no_products(GetParam());
    if (!reason.empty()) GTEST_SKIP() << reason;
  }
};

// A kernel that does not state the dtype works in float32 between conversions.
TEST_P(SixteenBits, KernelsOfCommonLayersStateTheDtype) {
  std::vector<const char*> types{
      "AbsVal",   "BatchNorm", "BatchNormScale", "BNLL",    "Bias",  "Concat",  "Convolution",
      "Dropout",  "ELU",       "Eltwise",        "Exp",     "GELU",  "Flatten", "InnerProduct",
      "LRN",      "Log",       "PReLU",          "Pooling", "Power", "ReLU",    "Reorder",
      "Reshape",  "Scale",     "SiLU",           "Sigmoid", "Split", "Swish",   "TanH",
      "Threshold"};
  for (const char* type : types) {
    const uint32_t known = layer_registry().kernel(type, kernel_device().kind()).dtypes;
    EXPECT_NE(known >> GetParam() & 1U, 0U) << type;
    EXPECT_NE(known >> TANDEM_FLOAT32 & 1U, 0U) << type;
  }
}

TEST_P(SixteenBitProducts, ConvolutionRoundsItsResultsOnly) {
  // On a GPU the bias is added to a rounded sum.
  expect_reference("convolution", "Convolution",
                   {.output = by_device(1, 2), .weight_gradient = by_device(0, 1)});
}
TEST_P(SixteenBits, DeconvolutionOnAGpuRoundsItsResultsOnly) {
  if (kernels_run_on_a_cpu()) GTEST_SKIP() << "the cpu kernel supports float32 only";
  expect_reference("deconvolution", "Deconvolution", {.output = 2, .weight_gradient = 1});
}
TEST_P(SixteenBitProducts, InnerProductRoundsItsResultsOnly) {
  expect_reference("inner_product", "InnerProduct");
}
TEST_P(SixteenBits, ReluRoundsItsResultsOnly) {
  expect_reference("relu", "ReLU");
}
TEST_P(SixteenBits, ElementwiseLayersRoundTheirResultsOnly) {
  expect_reference("absval", "AbsVal");
  expect_reference("bnll", "BNLL");
  expect_reference("clip", "Clip");
  expect_reference("gelu", "GELU");
  expect_reference("hard_sigmoid", "HardSigmoid");
  expect_reference("hard_swish", "HardSwish");
  expect_reference("log", "Log");
  expect_reference("power", "Power");
  expect_reference("silu", "SiLU");
  expect_reference("swish", "Swish");
  expect_reference("threshold", "Threshold", {0, 0, 0});
}
TEST_P(SixteenBits, ElementwiseLayersReadTheirRoundedOutputBackward) {
  // The slope is computed from a rounded y and the product is rounded. The largest slopes here are
  // at least 1/8 (Sigmoid, u of y (1 - y) is at most 1/4 of it), 1/2 (TanH), 1 (ELU), and that of
  // the largest y (Exp).
  expect_reference("sigmoid", "Sigmoid", {.input_gradient = 3});
  expect_reference("tanh", "TanH", {.input_gradient = 3});
  expect_reference("elu", "ELU", {.input_gradient = 2});
  expect_reference("exp", "Exp", {.input_gradient = 2});
}
TEST_P(SixteenBits, PReluAndBiasRoundTheirResultsOnly) {
  expect_reference("prelu", "PReLU");
  expect_reference("bias", "Bias");
  expect_reference("bias_by_input", "Bias");
}
TEST_P(SixteenBitProducts, PoolingRoundsItsResultsOnly) {
  // On a cpu, a mean over a window beyond the edge is rounded, scaled and rounded again.
  const double times = by_device(2, 1);
  expect_reference("pooling", "Pooling", {.output = times, .input_gradient = times});
}
TEST_P(SixteenBits, ConcatAndFlattenKeepTheBits) {
  expect_reference("concat", "Concat", {0, 0, 0});
  expect_reference("flatten", "Flatten", {0, 0, 0});
}
TEST_P(SixteenBits, EltwiseRoundsItsResultsOnly) {
  expect_reference("eltwise", "Eltwise");
}
TEST_P(SixteenBits, LrnRoundsItsResultsOnly) {
  expect_reference("lrn", "LRN");
}
TEST_P(SixteenBits, ScaleRoundsItsResultsOnly) {
  expect_reference("scale", "Scale");
  expect_reference("scale_by_input", "Scale");
}
TEST_P(SixteenBits, BatchNormReadsItsRoundedOutputBackward) {
  // dx = (dy - mean - y * slope) * scale contains y twice: the sum for the slope reads it, too.
  expect_reference("batch_norm", "BatchNorm", {.input_gradient = 3});
}

TEST_P(SixteenBitProducts, WeightsAreRoundedWhenTheyAreRead) {
  std::vector<LayerSetup> setups{
      {.type = "InnerProduct",
       .parameters = {{"num_output", "12"}},
       .inputs = {random_tensor({4, 20, 1, 1}, 5)},
       .weights = {random_tensor({12, 20, 1, 1}, 6), random_tensor({12, 1, 1, 1}, 7)}},
      {.type = "Convolution",
       .parameters = {{"num_output", "6"}, {"kernel_size", "3"}, {"group", "2"}},
       .inputs = {random_tensor({2, 4, 5, 6}, 5)},
       .weights = {random_tensor({6, 2, 3, 3}, 6), random_tensor({6, 1, 1, 1}, 7)}}};
  for (const LayerSetup& plain : setups) {
    for (LayerSetup exact : in_every_layout(in_sixteen_bits(plain))) {
      SCOPED_TRACE(exact.type + " " + layout_text(exact));
      LayerSetup fetched = exact;
      fetched.weights[0] = rounded(fetched.weights[0]);
      LayerRun a(exact), b(fetched);
      const std::vector<PlainTensor> y = a.forward();
      EXPECT_EQ(y[0].values, b.forward()[0].values);
      EXPECT_EQ(a.backward_data(y)[0].values, b.backward_data(y)[0].values);
    }
  }
}

TEST_P(SixteenBits, DropoutDropsTheSameElementsAsInFloat32) {
  const LayerSetup setup{.type = "Dropout", .inputs = {random_tensor({3, 32, 5, 4}, 1)}};
  compare_with_float32(rounded(setup), {rounded(random_tensor({3, 32, 5, 4}, 2))}, {});
  LayerSetup slice = rounded(setup);
  slice.slice_begin = 16;
  slice.slice_end = 32;
  compare_with_float32(slice, {rounded(random_tensor({3, 16, 5, 4}, 3))}, {});
}

TEST_P(SixteenBits, SplitAddsGradientsInFloat32AndRoundsOnce) {
  // 1, and three times a third of its last digit: if they were added one by one in 16 bits, none of
  // them would change the sum.
  const Shape shape{1, 16, 3, 2};
  const auto all = [&](float value) { return PlainTensor{shape, std::vector<float>(96, value)}; };
  const float third = rounded(static_cast<float>(2 * u() / 3));
  LayerSetup setup{.type = "Split", .inputs = {all(2)}, .output_count = 4};
  LayerRun run(in_sixteen_bits(setup));
  EXPECT_EQ(run.forward()[3].values, all(2).values);
  const PlainTensor sum = run.backward_data({all(1), all(third), all(third), all(third)})[0];
  EXPECT_EQ(sum.values, all(static_cast<float>(1 + 2 * u())).values);
}

TEST_P(SixteenBits, ReorderConvertsLayoutAndDtypeInBothDirections) {
  const PlainTensor values = random_tensor({2, 16, 3, 2}, 4);
  for (LayerSetup setup : in_every_layout({.type = "Reorder", .inputs = {values}})) {
    SCOPED_TRACE(layout_text(setup));
    setup.output_dtype = GetParam();
    LayerRun run(setup);
    const PlainTensor half = rounded(values);
    EXPECT_EQ(run.forward()[0].values, half.values);
    EXPECT_EQ(run.backward_data({values})[0].values, half.values);
  }
}

// 0.7 is no number of 16 bits, so the rounded output of an element beyond it is not equal to it.
TEST_P(SixteenBits, ClipHasNoGradientBeyondABoundThatIsRounded) {
  LayerSetup setup{.type = "Clip",
                   .parameters = {{"min", "-0.7"}, {"max", "0.7"}},
                   .inputs = {{{1, 16, 1, 2}, std::vector<float>(32, 2.0F)}}};
  std::fill_n(setup.inputs[0].values.begin(), 16, -2.0F);
  LayerRun run(in_sixteen_bits(setup));
  (void)run.forward();
  const PlainTensor ones{{1, 16, 1, 2}, std::vector<float>(32, 1.0F)};
  EXPECT_EQ(run.backward_data({ones})[0].values, std::vector<float>(32, 0.0F));
}

TEST_P(SixteenBits, NanStaysNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  PlainTensor values{{1, 16, 1, 2}, std::vector<float>(32, nan)};
  LayerSetup setup{.type = "ReLU", .inputs = {values}};
  LayerRun run(in_sixteen_bits(setup));
  const PlainTensor output = run.forward()[0];
  for (const float value : output.values) EXPECT_TRUE(std::isnan(value));
}

TEST_P(SixteenBitProducts, SlicesOfAnInnerProductEqualTheWhole) {
  LayerSetup setup{.type = "InnerProduct",
                   .parameters = {{"num_output", "12"}},
                   .inputs = {random_tensor({4, 20, 1, 1}, 5)},
                   .weights = {random_tensor({12, 20, 1, 1}, 6), random_tensor({12, 1, 1, 1}, 7)}};
  setup.slice_begin = 4;
  setup.slice_end = 10;
  compare_with_float32(rounded(setup), {rounded(random_tensor({4, 6, 1, 1}, 9))}, {});
  setup.input_begin = 5;
  setup.input_end = 17;
  compare_with_float32(rounded(setup), {rounded(random_tensor({4, 6, 1, 1}, 8))}, {});
}

// Tensor cores read NHWC.
TEST_P(SixteenBits, ConvolutionsOnAGpuPreferNhwc) {
  if (kernels_run_on_a_cpu()) GTEST_SKIP() << "the cpu kernels prefer other layouts";
  const LayerSetup setup{
      .type = "Convolution",
      .parameters = {{"num_output", "4"}, {"kernel_size", "3"}},
      .inputs = {random_tensor({2, 3, 5, 6}, 5)},
      .weights = {random_tensor({4, 3, 3, 3}, 6), random_tensor({4, 1, 1, 1}, 7)}};
  const auto options = LayerRun(in_sixteen_bits(setup)).layouts();
  ASSERT_EQ(options.size(), 2U);
  EXPECT_EQ(options[0].input, TANDEM_NHWC);
  EXPECT_EQ(options[1].input, TANDEM_NCHW);
  EXPECT_GT(options[1].extra_bytes, options[0].extra_bytes);
}

TEST_P(SixteenBits, NumbersAreRoundedToNearestEven) {
  // Ties, the largest and the smallest numbers, and numbers out of range.
  std::vector<float> values;
  for (const float scale : {1.0F, 65504.0F, 1e-7F, 6.1e-5F, 3e38F, 1e-37F}) {
    for (int i = -16; i <= 16; ++i) {
      values.push_back(scale * (1 + static_cast<float>(i) / 4096));
      values.push_back(-values.back() / 3);
    }
  }
  const auto rows = static_cast<int64_t>(values.size() / 2);
  LayerSetup setup{.type = "Reorder", .inputs = {{{rows, 1, 1, 2}, values}}};
  setup.output_layout = TANDEM_NHWC;
  setup.output_dtype = GetParam();
  EXPECT_EQ(LayerRun(setup).forward()[0].values, rounded(setup.inputs[0]).values);
}

std::string name_of(const testing::TestParamInfo<int32_t>& info) {
  return dtype_name(info.param);
}
INSTANTIATE_TEST_SUITE_P(Dtypes, SixteenBits, testing::Values(TANDEM_BFLOAT16, TANDEM_FLOAT16),
                         &name_of);
INSTANTIATE_TEST_SUITE_P(Dtypes, SixteenBitProducts,
                         testing::Values(TANDEM_BFLOAT16, TANDEM_FLOAT16), &name_of);

}  // namespace
}  // namespace tandem::test
