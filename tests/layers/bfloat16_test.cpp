// Kernels of bfloat16 beside the same kernels in float32, which reference_test.cpp and its
// neighbours hold against float64 to 1e-6. Inputs, output gradients and weights are numbers that
// bfloat16 has, so that both compute from the same ones, in float32, and what is left is what
// rounding to 8 significant bits takes away where a result is stored: u = 2^-8 of it at most. Hence
// the bound of a tensor, as max |a - b| / max |b|: u for every rounding between the inputs and the
// result that is not exact, and 1e-4 for sums in another order. Weight gradients are float32: they
// have roundings only where backward reads what forward has stored.
#include <gtest/gtest.h>

#include "tests/support/reference_check.h"

namespace tandem::test {
namespace {

constexpr double u = 1.0 / 256, order_of_sums = 1e-4;

// How often each result has been rounded.
struct Roundings {
  double output = 1, input_gradient = 1, weight_gradient = 0;
};

void expect_rounded(const std::vector<PlainTensor>& actual,
                    const std::vector<PlainTensor>& expected, double roundings,
                    const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    if (expected[i].values.empty()) continue;
    const double error = relative_difference(actual[i].values, expected[i].values);
    EXPECT_LE(error, roundings * u + order_of_sums) << what << i;
    record_error("bfloat16 " + what, error);
  }
}

LayerSetup rounded(LayerSetup setup) {
  for (PlainTensor& tensor : setup.inputs) tensor = rounded_to_bfloat16(tensor);
  for (PlainTensor& tensor : setup.weights) tensor = rounded_to_bfloat16(tensor);
  return setup;
}
LayerSetup in_bfloat16(LayerSetup setup) {
  setup.input_dtype = setup.output_dtype = TANDEM_BFLOAT16;
  return setup;
}

// In every layout that the kernel offers for bfloat16.
void compare_with_float32(const LayerSetup& plain, const std::vector<PlainTensor>& gradients,
                          const Roundings& roundings) {
  for (const LayerSetup& half : in_every_layout(in_bfloat16(plain))) {
    SCOPED_TRACE(half.type + " " + layout_text(half));
    LayerSetup whole = half;
    whole.input_dtype = whole.output_dtype = TANDEM_FLOAT32;
    LayerRun actual(half), expected(whole);
    expect_rounded(actual.forward(), expected.forward(), roundings.output, "output");
    if (gradients.empty()) continue;
    if ((actual.type().traits & TANDEM_NO_DATA_GRADIENT) == 0) {
      expect_rounded(actual.backward_data(gradients), expected.backward_data(gradients),
                     roundings.input_gradient, "input gradient ");
    }
    // A slice of the inputs leaves the others' weights alone.
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

void expect_reference_in_bfloat16(const std::string& file, const std::string& type,
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
      gradients.push_back(rounded_to_bfloat16(one));
    }
    if (gradients.empty()) setup.flags = 0;
    compare_with_float32(rounded(setup), gradients, roundings);
  }
}

// The host asks for it: a kernel that does not say so works in float32 between conversions.
TEST(Bfloat16, IsWhatTheKernelsOfCommonNetsSayTheyKnow) {
  for (const char* type :
       {"Convolution", "InnerProduct", "ReLU", "Pooling", "LRN", "Dropout", "Concat", "Eltwise",
        "Split", "BatchNorm", "Scale", "Flatten", "Reshape", "Reorder"}) {
    const uint32_t both = 1U << TANDEM_FLOAT32 | 1U << TANDEM_BFLOAT16;
    EXPECT_EQ(layer_registry().kernel(type, "cpu").dtypes, both) << type;
  }
}

TEST(Bfloat16, ConvolutionRoundsItsResultsOnly) {
  expect_reference_in_bfloat16("convolution", "Convolution");
}
TEST(Bfloat16, InnerProductRoundsItsResultsOnly) {
  expect_reference_in_bfloat16("inner_product", "InnerProduct");
}
TEST(Bfloat16, ReluRoundsItsResultsOnly) {
  expect_reference_in_bfloat16("relu", "ReLU");
}
TEST(Bfloat16, ElementwiseLayersRoundTheirResultsOnly) {
  expect_reference_in_bfloat16("swish", "Swish");
  expect_reference_in_bfloat16("absval", "AbsVal");
}
TEST(Bfloat16, ALayerThatReadsItsOutputBackwardReadsItRounded) {
  // y (1 - y) of a rounded y: u of y, at most of 1, against the largest slope, at least 1/8 here.
  expect_reference_in_bfloat16("sigmoid", "Sigmoid", {.input_gradient = 3});
}
TEST(Bfloat16, PoolingRoundsItsResultsOnly) {
  // A mean over a window that sticks out is rounded, scaled and rounded again.
  expect_reference_in_bfloat16("pooling", "Pooling", {.output = 2, .input_gradient = 2});
}
TEST(Bfloat16, ConcatAndFlattenMoveBitsOnly) {
  expect_reference_in_bfloat16("concat", "Concat", {0, 0, 0});
  expect_reference_in_bfloat16("flatten", "Flatten", {0, 0, 0});
}
TEST(Bfloat16, EltwiseRoundsItsResultsOnly) {
  expect_reference_in_bfloat16("eltwise", "Eltwise");
}
TEST(Bfloat16, LrnKeepsAnotherRoundedTensorForItsBackwardPass) {
  expect_reference_in_bfloat16("lrn", "LRN", {.input_gradient = 2});
}
TEST(Bfloat16, ScaleRoundsItsResultsOnly) {
  expect_reference_in_bfloat16("scale", "Scale");
}
TEST(Bfloat16, BatchNormReadsItsRoundedOutputBackward) {
  // dx = (dy - mean - y * slope) * scale, with y twice: in the sum and beside it.
  expect_reference_in_bfloat16("batch_norm", "BatchNorm", {.input_gradient = 3});
}

TEST(Bfloat16, DropoutDropsTheSameElementsAsInFloat32) {
  const LayerSetup setup{.type = "Dropout", .inputs = {random_tensor({3, 32, 5, 4}, 1)}};
  compare_with_float32(rounded(setup), {rounded_to_bfloat16(random_tensor({3, 32, 5, 4}, 2))}, {});
  LayerSetup slice = rounded(setup);
  slice.slice_begin = 16;
  slice.slice_end = 32;
  compare_with_float32(slice, {rounded_to_bfloat16(random_tensor({3, 16, 5, 4}, 3))}, {});
}

TEST(Bfloat16, SplitAddsGradientsInFloat32AndRoundsOnce) {
  // 1, and three times a third of its last place: added one after the other in bfloat16, none of
  // them would change anything.
  const Shape shape{1, 16, 3, 2};
  const auto all = [&](float value) { return PlainTensor{shape, std::vector<float>(96, value)}; };
  const float third = rounded_to_bfloat16(1.0F / 384);
  LayerSetup setup{.type = "Split", .inputs = {all(2)}, .output_count = 4};
  LayerRun run(in_bfloat16(setup));
  EXPECT_EQ(run.forward()[3].values, all(2).values);
  const PlainTensor sum = run.backward_data({all(1), all(third), all(third), all(third)})[0];
  EXPECT_EQ(sum.values, all(1 + 2 * u).values);
}

TEST(Bfloat16, ReorderChangesLayoutAndDtypeAtOnceAndBack) {
  const PlainTensor values = random_tensor({2, 16, 3, 2}, 4);
  for (LayerSetup setup : in_every_layout({.type = "Reorder", .inputs = {values}})) {
    SCOPED_TRACE(layout_text(setup));
    setup.output_dtype = TANDEM_BFLOAT16;
    LayerRun run(setup);
    const PlainTensor half = rounded_to_bfloat16(values);
    EXPECT_EQ(run.forward()[0].values, half.values);
    EXPECT_EQ(run.backward_data({values})[0].values, half.values);
  }
}

TEST(Bfloat16, WhatIsNotANumberStaysNone) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  PlainTensor values{{1, 16, 1, 2}, std::vector<float>(32, nan)};
  LayerSetup setup{.type = "ReLU", .inputs = {values}};
  LayerRun run(in_bfloat16(setup));
  const PlainTensor output = run.forward()[0];
  for (const float value : output.values) EXPECT_TRUE(std::isnan(value));
}

TEST(Bfloat16, ASliceOfAnInnerProductIsAPartOfTheWhole) {
  LayerSetup setup{.type = "InnerProduct",
                   .parameters = {{"num_output", "12"}},
                   .inputs = {random_tensor({4, 20, 1, 1}, 5)},
                   .weights = {random_tensor({12, 20, 1, 1}, 6), random_tensor({12, 1, 1, 1}, 7)}};
  setup.slice_begin = 4;
  setup.slice_end = 10;
  compare_with_float32(rounded(setup), {rounded_to_bfloat16(random_tensor({4, 6, 1, 1}, 9))}, {});
  setup.input_begin = 5;
  setup.input_end = 17;
  compare_with_float32(rounded(setup), {rounded_to_bfloat16(random_tensor({4, 6, 1, 1}, 8))}, {});
}

}  // namespace
}  // namespace tandem::test
