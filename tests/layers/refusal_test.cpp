// Invalid parameters and shapes are refused with one message that says what is wrong and what would
// be right. The host adds the layer's name, type and position in the file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/layer_test.h"

namespace tandem::test {
namespace {

using testing::HasSubstr;
using Parameters = std::vector<std::pair<std::string, std::string>>;

std::string convolution(const Shape& input, const Parameters& parameters) {
  return refusal_of(
      {.type = "Convolution", .parameters = parameters, .inputs = {random_tensor(input, 1)}});
}
std::string pooling(const Parameters& parameters) {
  return refusal_of(
      {.type = "Pooling", .parameters = parameters, .inputs = {random_tensor({1, 3, 6, 8}, 1)}});
}

TEST(Convolution, RefusesAKernelLargerThanThePaddedInput) {
  EXPECT_EQ(convolution({1, 3, 6, 6}, {{"num_output", "4"}, {"kernel_size", "11"}, {"pad", "1"}}),
            "Convolution: kernel 11 exceeds the padded input 8x8");
  EXPECT_EQ(convolution({1, 3, 9, 3}, {{"num_output", "4"}, {"kernel_h", "5"}, {"kernel_w", "4"}}),
            "Convolution: kernel 5x4 exceeds the padded input 9x3");
  EXPECT_EQ(
      convolution({1, 3, 4, 4}, {{"num_output", "4"}, {"kernel_size", "3"}, {"dilation", "2"}}),
      "Convolution: kernel 3 with dilation 2 exceeds the padded input 4x4");
}

TEST(Convolution, RefusesChannelsThatAreNotDivisibleByTheGroups) {
  EXPECT_EQ(convolution({1, 4, 6, 6}, {{"num_output", "5"}, {"kernel_size", "3"}, {"group", "2"}}),
            "Convolution: num_output 5 is not divisible by group 2");
  EXPECT_EQ(convolution({1, 3, 6, 6}, {{"num_output", "4"}, {"kernel_size", "3"}, {"group", "2"}}),
            "Convolution: the input's 3 channels are not divisible by group 2");
}

TEST(Convolution, RefusesAMissingIncompleteOrRepeatedKernelSize) {
  EXPECT_EQ(convolution({1, 3, 6, 6}, {{"num_output", "4"}}),
            "Convolution: the kernel has no size: write kernel_size, or kernel_h and kernel_w");
  EXPECT_EQ(convolution({1, 3, 6, 6}, {{"num_output", "4"}, {"kernel_h", "3"}}),
            "Convolution: kernel_h and kernel_w must be written together, but one is missing");
  EXPECT_EQ(convolution(
                {1, 3, 6, 6},
                {{"num_output", "4"}, {"kernel_size", "3"}, {"kernel_h", "3"}, {"kernel_w", "3"}}),
            "Convolution: write either kernel_size or kernel_h and kernel_w, not both");
  EXPECT_EQ(
      convolution(
          {1, 3, 6, 6},
          {{"num_output", "4"}, {"kernel_size", "3"}, {"kernel_size", "3"}, {"kernel_size", "3"}}),
      "Convolution: kernel_size has 3 values, but an image has 2 axes");
}

TEST(Convolution, DeclaresTheRangesThatTheHostChecks) {
  EXPECT_THAT(convolution({1, 3, 6, 6}, {{"num_output", "0"}, {"kernel_size", "3"}}),
              HasSubstr("num_output is '0'"));
  EXPECT_THAT(
      convolution({1, 3, 6, 6}, {{"num_output", "4"}, {"kernel_size", "3"}, {"stride", "0"}}),
      HasSubstr("stride is '0'"));
  EXPECT_THAT(convolution({1, 3, 6, 6}, {{"num_output", "4"}, {"kernel_size", "3"}, {"axis", "2"}}),
              HasSubstr("axis is '2', but must be 1"));
  EXPECT_THAT(
      convolution({1, 3, 6, 6}, {{"num_output", "4"}, {"kernel_size", "3"}, {"engine", "GPU"}}),
      HasSubstr("engine is 'GPU'"));
}

TEST(Pooling, RefusesUnsupportedParameters) {
  EXPECT_EQ(pooling({{"pool", "STOCHASTIC"}, {"kernel_size", "3"}}),
            "Pooling: pool STOCHASTIC is not supported: only MAX and AVE are");
  EXPECT_EQ(pooling({{"kernel_size", "9"}}), "Pooling: kernel 9 exceeds the padded input 6x8");
  EXPECT_EQ(pooling({{"kernel_size", "2"}, {"pad", "2"}}),
            "Pooling: pad 2 must be smaller than the kernel 2: a window would contain no pixel");
  EXPECT_EQ(pooling({{"global_pooling", "true"}, {"kernel_size", "3"}}),
            "Pooling: global_pooling pools the whole image: remove kernel_size");
  EXPECT_EQ(pooling({{"global_pooling", "true"}, {"stride", "2"}}),
            "Pooling: global_pooling needs pad 0 and stride 1, but they are 0 and 2");
  EXPECT_EQ(pooling({}),
            "Pooling: the kernel has no size: write kernel_size, or kernel_h and kernel_w");
}

TEST(Lrn, RefusesAnEvenSize) {
  const auto lrn = [](const Parameters& parameters) {
    return refusal_of(
        {.type = "LRN", .parameters = parameters, .inputs = {random_tensor({1, 3, 2, 2}, 1)}});
  };
  EXPECT_EQ(lrn({{"local_size", "4"}}),
            "LRN: local_size 4 is even, but needs a middle element: write 3 or 5");
}

TEST(InnerProduct, RefusesTransposedWeightsAndOtherAxes) {
  const auto inner_product = [](const Parameters& parameters) {
    return refusal_of({.type = "InnerProduct",
                       .parameters = parameters,
                       .inputs = {random_tensor({1, 3, 1, 1}, 1)}});
  };
  EXPECT_EQ(inner_product({{"num_output", "4"}, {"transpose", "true"}}),
            "InnerProduct: transpose is true, but weights are stored as outputs x inputs only");
  EXPECT_THAT(inner_product({{"num_output", "4"}, {"axis", "2"}}), HasSubstr("axis is '2'"));
}

TEST(Dropout, RefusesARatioOfOne) {
  EXPECT_THAT(refusal_of({.type = "Dropout",
                          .parameters = {{"dropout_ratio", "1"}},
                          .inputs = {random_tensor({1, 3, 1, 1}, 1)}}),
              HasSubstr("dropout_ratio is '1'"));
}

LayerSetup labelled(const std::string& type, const std::vector<float>& labels) {
  const auto rows = static_cast<int64_t>(labels.size());
  return {.type = type,
          .inputs = {random_tensor({rows, 5, 1, 1}, 1), {{rows, 1, 1, 1}, labels}},
          .flags = type == "Accuracy" ? 0U : uint32_t{TANDEM_WANTS_BACKWARD_DATA}};
}

std::string failure_of_forward(const LayerSetup& setup) {
  LayerRun run(setup);
  try {
    (void)run.forward();
  } catch (const Error& failure) {
    return failure.what();
  }
  return "";
}

TEST(LabelledRows, FailOnAnInvalidLabelAndReportItOnACpu) {
  for (const std::string type : {"SoftmaxWithLoss", "Accuracy"}) {
    EXPECT_EQ(failure_of_forward(labelled(type, {0, 5, 1})),
              type + ": label 5 of row 1 is not below the 5 classes");
    EXPECT_EQ(failure_of_forward(labelled(type, {0, 1, 1.5F})),
              type + ": label 1.5 of row 2 is not a whole number");
    EXPECT_EQ(failure_of_forward(labelled(type, {0, 4, -1})), "");
  }
}

TEST(LabelledRows, AreRefusedInOtherShapes) {
  for (const std::string type : {"SoftmaxWithLoss", "Accuracy"}) {
    LayerSetup image = labelled(type, {0, 1});
    image.inputs[0] = random_tensor({2, 5, 3, 3}, 1);
    EXPECT_THAT(refusal_of(image),
                HasSubstr("has one label per row, but scores for 9 positions of each, 2x5x3x3"));
    LayerSetup few = labelled(type, {0, 1});
    few.inputs[1] = {{1, 1, 1, 1}, {0}};
    EXPECT_EQ(refusal_of(few),
              type + ": needs one label per row, but has labels 1x1x1x1 for 2 rows");
  }
}

TEST(Accuracy, RefusesATopKAboveTheNumberOfClasses) {
  LayerSetup setup = labelled("Accuracy", {0});
  setup.parameters = {{"top_k", "6"}};
  EXPECT_EQ(refusal_of(setup), "Accuracy: top_k 6 exceeds the 5 classes");
}

}  // namespace
}  // namespace tandem::test
