// Every differentiable layer compared with finite differences, in every layout that its kernel
// offers.
#include <gtest/gtest.h>

#include <random>

#include "tests/support/gradient_check.h"

namespace tandem::test {
namespace {

// Values that differ by at least 0.1 from each other and from zero, so that a step of 0.01 does not
// change their order.
PlainTensor distinct_tensor(const Shape& shape, unsigned seed) {
  PlainTensor result = random_tensor(shape, seed);
  std::vector<size_t> order(result.values.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), std::mt19937(seed));
  const auto half = static_cast<float>(order.size()) / 2 - 0.5F;
  for (size_t i = 0; i < order.size(); ++i) {
    result.values[order[i]] = 0.2F * (static_cast<float>(i) - half) + 0.05F;
  }
  return result;
}

TEST(Gradients, OfConvolutionMatchDifferences) {
  check_in_every_layout(
      {.type = "Convolution",
       .parameters = {{"num_output", "8"}, {"kernel_size", "3"}, {"pad", "1"}},
       .inputs = {random_tensor({2, 8, 3, 4}, 1)},
       .weights = {random_tensor({8, 8, 3, 3}, 2, 0.2F), random_tensor({8, 1, 1, 1}, 3)}});
}

TEST(Gradients, OfADilatedGroupedStridedConvolutionMatchDifferences) {
  check_in_every_layout({.type = "Convolution",
                         .parameters = {{"num_output", "6"},
                                        {"kernel_size", "2"},
                                        {"kernel_size", "3"},
                                        {"stride", "1"},
                                        {"stride", "2"},
                                        {"dilation", "2"},
                                        {"pad", "1"},
                                        {"group", "2"},
                                        {"bias_term", "false"}},
                         .inputs = {random_tensor({2, 4, 5, 6}, 4)},
                         .weights = {random_tensor({6, 2, 2, 3}, 5)}});
}

TEST(Gradients, OfInnerProductMatchDifferences) {
  check_in_every_layout(
      {.type = "InnerProduct",
       .parameters = {{"num_output", "5"}},
       .inputs = {random_tensor({3, 2, 3, 2}, 6)},
       .weights = {random_tensor({5, 2, 3, 2}, 7), random_tensor({5, 1, 1, 1}, 8)}});
}

TEST(Gradients, OfReluMatchDifferences) {
  for (const char* slope : {"0", "0.3"}) {
    check_in_every_layout({.type = "ReLU",
                           .parameters = {{"negative_slope", slope}},
                           .inputs = {distinct_tensor({2, 8, 2, 3}, 9)}});
  }
}

TEST(Gradients, OfLrnMatchDifferences) {
  check_in_every_layout({.type = "LRN",
                         .parameters = {{"alpha", "0.5"}},
                         .inputs = {random_tensor({2, 16, 2, 2}, 10)}});
  check_in_every_layout({.type = "LRN",
                         .parameters = {{"local_size", "3"}, {"beta", "0.6"}, {"k", "2"}},
                         .inputs = {random_tensor({1, 7, 2, 3}, 11)}});
}

TEST(Gradients, OfPoolingMatchDifferences) {
  for (const char* method : {"MAX", "AVE"}) {
    check_in_every_layout(
        {.type = "Pooling",
         .parameters = {{"pool", method}, {"kernel_size", "3"}, {"stride", "2"}, {"pad", "1"}},
         .inputs = {distinct_tensor({1, 8, 6, 5}, 12)}});
  }
}

TEST(Gradients, OfGlobalPoolingMatchDifferences) {
  for (const char* method : {"MAX", "AVE"}) {
    check_in_every_layout({.type = "Pooling",
                           .parameters = {{"pool", method}, {"global_pooling", "true"}},
                           .inputs = {distinct_tensor({2, 8, 3, 4}, 13)}});
  }
}

TEST(Gradients, OfDropoutMatchDifferences) {
  check_in_every_layout({.type = "Dropout", .inputs = {random_tensor({2, 8, 3, 2}, 14)}});
}

TEST(Gradients, OfSoftmaxMatchDifferences) {
  check_in_every_layout({.type = "Softmax", .inputs = {random_tensor({2, 5, 2, 2}, 15)}});
}

TEST(Gradients, OfSoftmaxWithLossMatchDifferences) {
  check_in_every_layout({.type = "SoftmaxWithLoss",
                         .parameters = {{"ignore_label", "2"}},
                         .inputs = {random_tensor({4, 5, 1, 1}, 16), {{4, 1, 1, 1}, {1, -1, 2, 4}}},
                         .normaliser = 3});
}

TEST(Gradients, OfSplitAreSummed) {
  check_in_every_layout(
      {.type = "Split", .inputs = {random_tensor({2, 8, 2, 3}, 17)}, .output_count = 3});
}

TEST(Gradients, OfReorderHaveTheInputsLayout) {
  const PlainTensor values = random_tensor({2, 16, 3, 2}, 18);
  const std::vector<LayerSetup> pairs =
      in_every_layout({.type = "Reorder", .inputs = {values}, .input_layout = TANDEM_NHWC});
  EXPECT_EQ(pairs.size(), kernels_run_on_a_cpu() ? 12U : 2U);
  for (const LayerSetup& setup : pairs) {
    SCOPED_TRACE(layout_text(setup));
    LayerRun run(setup);
    EXPECT_EQ(run.forward()[0].values, values.values);
    EXPECT_EQ(run.backward_data({values})[0].values, values.values);
  }
}

}  // namespace
}  // namespace tandem::test
