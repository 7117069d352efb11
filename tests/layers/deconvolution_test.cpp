// Deconvolution, and dilated and depthwise convolutions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/gradient_check.h"
#include "tests/support/reference_check.h"

namespace tandem::test {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

TEST(Deconvolution, AgreesWithTheReferenceInEveryLayout) {
  expect_reference("deconvolution", "Deconvolution", 2e-6);
}
TEST(Convolution, DilatedOrDepthwiseAgreesWithTheReferenceInEveryLayout) {
  expect_reference("convolution_dilated_depthwise", "Convolution", 2e-6);
}

TEST(Deconvolution, GradientsMatchDifferences) {
  const LayerSetup setup{
      .type = "Deconvolution",
      .parameters = {{"num_output", "8"}, {"kernel_size", "3"}, {"stride", "2"}, {"pad", "1"}},
      .inputs = {random_tensor({2, 8, 3, 2}, 1)},
      .weights = {random_tensor({8, 8, 3, 3}, 2, 0.2F), random_tensor({8, 1, 1, 1}, 3)}};
  for (const LayerSetup& one : in_every_layout(setup)) check_gradients(one);
}

TEST(Deconvolution, HasTheShapesAndFansOfCaffe) {
  LayerSetup setup{.type = "Deconvolution",
                   .parameters = {{"num_output", "6"},
                                  {"kernel_size", "5"},
                                  {"stride", "3"},
                                  {"pad", "1"},
                                  {"dilation", "2"},
                                  {"group", "2"},
                                  {"weight_filler", "xavier"}},
                   .inputs = {random_tensor({2, 4, 3, 7}, 1)},
                   .weights = {random_tensor({4, 3, 5, 5}, 2), random_tensor({6, 1, 1, 1}, 3)}};
  LayerRun run(setup);
  EXPECT_EQ(to_string(run.output_shapes()[0]), "2x6x13x25");
  // Caffe's fillers know only the shape of a weight: its first extent is the fan-out.
  EXPECT_EQ(run.declared_weights()[0].fan_in, 3 * 25);
  EXPECT_EQ(run.declared_weights()[0].fan_out, 4 * 25);
}

TEST(Deconvolution, AccumulatesWeightGradientsOnRequest) {
  const LayerSetup plain{
      .type = "Deconvolution",
      .parameters = {{"num_output", "16"}, {"kernel_size", "4"}, {"stride", "2"}},
      .inputs = {random_tensor({2, 16, 3, 3}, 1)},
      .weights = {random_tensor({16, 16, 4, 4}, 2), random_tensor({16, 1, 1, 1}, 3)}};
  for (const LayerSetup& setup : in_every_layout(plain)) {
    LayerRun run(setup);
    const std::vector<PlainTensor> factors{random_tensor(run.output_shapes()[0], 4)};
    const std::vector<PlainTensor> fresh = run.backward_weights(factors);
    const std::vector<PlainTensor> twice = run.backward_weights(factors, fresh);
    for (size_t i = 0; i < fresh.size(); ++i) {
      std::vector<float> expected = fresh[i].values;
      for (float& value : expected) value *= 2;
      EXPECT_LE(relative_difference(twice[i].values, expected), 1e-6) << layout_text(setup);
    }
  }
}

TEST(Deconvolution, RefusesPaddingThatLeavesNoOutput) {
  EXPECT_EQ(refusal_of({.type = "Deconvolution",
                        .parameters = {{"num_output", "4"}, {"kernel_size", "3"}, {"pad", "2"}},
                        .inputs = {random_tensor({1, 3, 2, 5}, 1)}}),
            "Deconvolution: pad 2 leaves no output: it would be 0x3");
}

TEST(Convolution, DepthwiseHasFastKernelsInABlockedLayoutOnACpu) {
  const LayerSetup plain{.type = "Convolution",
                         .parameters = {{"num_output", "32"},
                                        {"kernel_size", "3"},
                                        {"pad", "1"},
                                        {"group", "32"},
                                        {"bias_term", "false"}},
                         .inputs = {random_tensor({2, 32, 8, 8}, 1)},
                         .weights = {random_tensor({32, 1, 3, 3}, 2)}};
  const LayerSetup best = in_every_layout(plain).front();
  EXPECT_TRUE(best.input_layout == TANDEM_NCHW8C || best.input_layout == TANDEM_NCHW16C);
  const std::string algorithm = LayerRun(best).algorithm();
  EXPECT_THAT(algorithm, AnyOf(HasSubstr("dw"), HasSubstr("depthwise by vectors")));
  EXPECT_THAT(algorithm, Not(HasSubstr("ref")));
  EXPECT_THAT(algorithm, Not(HasSubstr("gemm")));
}

}  // namespace
}  // namespace tandem::test
