// Convolutions of single pixels on GPUs, by products of matrices: compared with sums in float64.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/layers/convolution_sums.h"
#include "tests/support/layer_test.h"

namespace tandem::test {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* by_products = "cublasGemmStridedBatchedEx";

class PointConvolution : public testing::Test {
 protected:
  void SetUp() override {
    if (kernels_run_on_a_cpu()) GTEST_SKIP() << "for kernels of GPUs only";
  }
};

LayerSetup points(const Shape& input, int64_t outputs, const std::string& type = "Convolution") {
  const bool transposed = type == "Deconvolution";
  return {.type = type,
          .parameters = {{"num_output", std::to_string(outputs)}, {"kernel_size", "1"}},
          .inputs = {random_tensor(input, 1)},
          .weights = {
              random_tensor(
                  transposed ? Shape{input.c, outputs, 1, 1} : Shape{outputs, input.c, 1, 1}, 2),
              random_tensor({outputs, 1, 1, 1}, 3)}};
}

// Many and few pixels; one image; joined images, of which the last ones are fewer; rows of joined
// pixels that are not aligned without zeros behind them; more products than run at a time.
std::vector<Shape> point_inputs() {
  return {{3, 5, 12, 11}, {1, 4, 13, 10}, {1, 6, 6, 6},    {40, 5, 6, 6},
          {38, 3, 5, 7},  {2, 3, 4, 8},   {300, 2, 8, 16}, {301, 1, 8, 17}};
}

TEST_F(PointConvolution, AgreesWithSumsInFloat64) {
  for (const Shape& input : point_inputs()) {
    SCOPED_TRACE(to_string(input));
    const LayerSetup setup = points(input, 7);
    LayerRun run(setup);
    EXPECT_EQ(run.algorithm(), by_products);
    expect_as_sums(setup, run, 1, 0, 1, 1);
    expect_added_weight_gradients(setup);
  }
}

// Its forward pass is the backward pass of the convolution with the same weights, and so on.
TEST_F(PointConvolution, TransposedIsADeconvolution) {
  for (const Shape& input : point_inputs()) {
    SCOPED_TRACE(to_string(input));
    LayerSetup setup = points(input, 7, "Deconvolution");
    setup.parameters.emplace_back("bias_term", "false");
    setup.weights.pop_back();
    LayerRun run(setup);
    EXPECT_EQ(run.algorithm(), by_products);
    const PlainTensor dy = random_tensor({input.n, 7, input.h, input.w}, 4);
    LayerSetup transposed = points(dy.shape, input.c);
    transposed.inputs = {dy};
    transposed.weights = setup.weights;
    const ConvolutionSums sums(transposed, setup.inputs[0], 1, 0);
    EXPECT_LE(relative_difference(run.forward()[0].values, sums.dx), 1e-6);
    EXPECT_LE(relative_difference(run.backward_data({dy})[0].values, sums.y), 1e-6);
    EXPECT_LE(relative_difference(run.backward_weights({dy})[0].values, sums.dw), 2e-6);
  }
}

TEST_F(PointConvolution, IsForFullFloat32AndPlainWindowsOnly) {
  const Shape input{2, 6, 9, 8};
  ASSERT_EQ(LayerRun(points(input, 4)).algorithm(), by_products);
  for (const auto& [parameter, value] : {std::pair{"stride", "2"}, {"pad", "1"}, {"group", "2"}}) {
    LayerSetup setup = points(input, 4);
    setup.parameters.emplace_back(parameter, value);
    if (std::string(parameter) == "group") setup.weights[0] = random_tensor({4, 3, 1, 1}, 2);
    EXPECT_THAT(LayerRun(setup).algorithm(), Not(HasSubstr(by_products))) << parameter;
  }
  EXPECT_THAT(LayerRun(points({2, 6, 5, 6}, 4)).algorithm(), Not(HasSubstr(by_products)));
  LayerSetup rounded = points(input, 4);
  rounded.flags |= TANDEM_ALLOWS_TF32;
  EXPECT_THAT(LayerRun(rounded).algorithm(), Not(HasSubstr(by_products)));
}

// Nothing is measured, so nothing is recorded; records from before there were these products, which
// name engines of cuDNN, are followed.
TEST_F(PointConvolution, IsNotMeasuredAndYieldsToARecord) {
  LayerSetup setup = points({2, 6, 9, 8}, 4);
  setup.flags |= TANDEM_MAY_MEASURE;
  EXPECT_EQ(LayerRun(setup).algorithm(), by_products);
  setup.algorithm =
      "measured: cuDNN forward engine 1, backward data engine 1, backward weights engine 1";
  LayerRun recorded(setup);
  EXPECT_EQ(recorded.algorithm(), setup.algorithm);
  expect_as_sums(setup, recorded, 1, 0, 1, 1);
}

}  // namespace
}  // namespace tandem::test
