// Kernels that choose an algorithm: what they report about it, and that the choice changes values
// only by rounding.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/layer_test.h"

namespace tandem::test {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

LayerSetup convolution(const std::string& type, uint32_t more_flags) {
  LayerSetup setup{
      .type = type,
      .parameters = {{"num_output", "6"}, {"kernel_size", "3"}, {"pad", "1"}},
      .inputs = {random_tensor({3, 4, 9, 8}, 1)},
      .weights = {random_tensor(type == "Convolution" ? Shape{6, 4, 3, 3} : Shape{4, 6, 3, 3}, 2),
                  random_tensor({6, 1, 1, 1}, 3)}};
  setup.flags |= more_flags;
  return setup;
}

void expect_near(const std::vector<float>& actual, const std::vector<float>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-4) << i;
}

TEST(MeasuredConvolution, ReportsThatItMeasuredAndNamesEveryPass) {
  for (const char* type : {"Convolution", "Deconvolution"}) {
    const std::string algorithm = LayerRun(convolution(type, TANDEM_MAY_MEASURE)).algorithm();
    if (kernels_run_on_a_cpu()) {
      EXPECT_THAT(algorithm, Not(StartsWith("measured: "))) << "nothing to choose from";
      continue;
    }
    EXPECT_THAT(algorithm, testing::AllOf(StartsWith("measured: cuDNN forward engine "),
                                          HasSubstr(", backward data engine "),
                                          HasSubstr(", backward weights engine ")));
    EXPECT_THAT(LayerRun(convolution(type, 0)).algorithm(), Not(StartsWith("measured: ")));
  }
}

TEST(MeasuredConvolution, GivesTheSameValues) {
  for (const char* type : {"Convolution", "Deconvolution"}) {
    LayerRun plain(convolution(type, 0)), measured(convolution(type, TANDEM_MAY_MEASURE));
    expect_near(measured.forward()[0].values, plain.forward()[0].values);
    const std::vector<PlainTensor> gradient{random_tensor({3, 6, 9, 8}, 4)};
    expect_near(measured.backward_data(gradient)[0].values,
                plain.backward_data(gradient)[0].values);
    expect_near(measured.backward_weights(gradient)[0].values,
                plain.backward_weights(gradient)[0].values);
  }
}

LayerSetup inner_product(int64_t outputs, bool bias) {
  LayerSetup setup{.type = "InnerProduct",
                   .parameters = {{"num_output", std::to_string(outputs)},
                                  {"bias_term", bias ? "true" : "false"}},
                   .inputs = {random_tensor({5, 7, 1, 1}, 1)},
                   .weights = {random_tensor({outputs, 7, 1, 1}, 2)}};
  if (bias) setup.weights.push_back(random_tensor({outputs, 1, 1, 1}, 3));
  return setup;
}

// Column by column, in float64.
TEST(InnerProductWithItsBias, IsTheProductPlusTheBias) {
  for (const int64_t outputs : {1, 2, 13}) {
    for (const bool bias : {false, true}) {
      const LayerSetup setup = inner_product(outputs, bias);
      const std::vector<float> y = LayerRun(setup).forward()[0].values;
      for (int64_t i = 0; i < 5 * outputs; ++i) {
        const int64_t row = i / outputs, output = i % outputs;
        double sum = bias ? setup.weights[1].values[static_cast<size_t>(output)] : 0.0;
        for (int64_t k = 0; k < 7; ++k) {
          sum += static_cast<double>(setup.inputs[0].values[static_cast<size_t>(row * 7 + k)]) *
                 setup.weights[0].values[static_cast<size_t>(output * 7 + k)];
        }
        EXPECT_NEAR(y[static_cast<size_t>(i)], sum, 1e-5) << outputs << " outputs, value " << i;
      }
    }
  }
}

TEST(InnerProductWithItsBias, OnAGpuIsOneKernelForAWholeLayer) {
  if (kernels_run_on_a_cpu()) GTEST_SKIP() << "for kernels of GPUs only";
  EXPECT_THAT(LayerRun(inner_product(13, true)).algorithm(), HasSubstr("bias by cublasLtMatmul"));
  EXPECT_THAT(LayerRun(inner_product(13, false)).algorithm(), Not(HasSubstr("cublasLtMatmul")));
  LayerSetup slice = inner_product(13, true);
  slice.slice_begin = 4;
  slice.slice_end = 9;
  EXPECT_THAT(LayerRun(slice).algorithm(), Not(HasSubstr("cublasLtMatmul")));
}

}  // namespace
}  // namespace tandem::test
