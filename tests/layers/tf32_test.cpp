// float32 products that may round their factors to TF32, in kernels for GPUs: the error of the
// rounding, and that convolutions with channels last, as tensor cores need them, equal those with
// channels first.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/computable.h"

namespace tandem::test {
namespace {

// The bound for products of two factors, each rounded to 11 significant bits.
constexpr double rounding = 2e-3;

class Tf32 : public testing::Test {
 protected:
  void SetUp() override {
    if (kernels_run_on_a_cpu()) GTEST_SKIP() << "TANDEM_TEST_KERNELS names no kernels for GPUs";
    const std::string reason = not_computable(TANDEM_FLOAT32, TANDEM_ALLOWS_TF32);
    if (!reason.empty()) GTEST_SKIP() << reason;
  }
  static bool is_stand_in() { return kernel_device().kind() == "cuda_on_host"; }
};

using Parameters = std::vector<std::pair<std::string, std::string>>;

LayerSetup filtering(const std::string& type, const Parameters& parameters, const Shape& input,
                     const Shape& weight, int64_t outputs) {
  LayerSetup setup{
      .type = type,
      .parameters = parameters,
      .inputs = {random_tensor(input, 1)},
      .weights = {random_tensor(weight, 2, 0.2F), random_tensor({outputs, 1, 1, 1}, 3)}};
  setup.flags |= TANDEM_ALLOWS_TF32;
  return setup;
}

// A first layer of three channels, two groups, a kernel of one pixel, groups of one channel,
// dilation, an output of one pixel, and a deconvolution.
std::vector<LayerSetup> tf32_setups() {
  return {filtering("Convolution",
                    {{"num_output", "8"}, {"kernel_size", "5"}, {"stride", "2"}, {"pad", "2"}},
                    {2, 3, 13, 11}, {8, 3, 5, 5}, 8),
          filtering("Convolution",
                    {{"num_output", "6"}, {"kernel_size", "3"}, {"pad", "1"}, {"group", "2"}},
                    {2, 8, 7, 6}, {6, 4, 3, 3}, 6),
          filtering("Convolution", {{"num_output", "7"}, {"kernel_size", "1"}}, {3, 5, 4, 6},
                    {7, 5, 1, 1}, 7),
          filtering("Convolution",
                    {{"num_output", "4"}, {"kernel_size", "3"}, {"pad", "1"}, {"group", "4"}},
                    {2, 4, 6, 5}, {4, 1, 3, 3}, 4),
          filtering("Convolution",
                    {{"num_output", "3"}, {"kernel_h", "3"}, {"kernel_w", "2"}, {"dilation", "2"}},
                    {2, 4, 9, 8}, {3, 4, 3, 2}, 3),
          filtering("Convolution", {{"num_output", "5"}, {"kernel_size", "4"}}, {3, 4, 4, 4},
                    {5, 4, 4, 4}, 5),
          filtering("Deconvolution",
                    {{"num_output", "6"}, {"kernel_size", "3"}, {"stride", "2"}, {"group", "2"}},
                    {2, 4, 4, 5}, {4, 3, 3, 3}, 6)};
}

// In TF32, tensor cores need channels last; full float32 stays as it was.
TEST_F(Tf32, ConvolutionsPreferNhwcAndThoseInFloat32Nchw) {
  for (LayerSetup setup : tf32_setups()) {
    const auto options = LayerRun(setup).layouts();
    ASSERT_EQ(options.size(), 2U) << setup.type;
    EXPECT_EQ(options[0].input, TANDEM_NHWC);
    EXPECT_EQ(options[0].output, TANDEM_NHWC);
    EXPECT_EQ(options[1].input, TANDEM_NCHW);
    EXPECT_GT(options[1].extra_bytes, options[0].extra_bytes);
    setup.flags &= ~uint32_t{TANDEM_ALLOWS_TF32};
    ASSERT_EQ(LayerRun(setup).layouts().size(), 1U) << setup.type;
    EXPECT_EQ(LayerRun(setup).layouts()[0].input, TANDEM_NCHW);
  }
}

void expect_same(const std::vector<PlainTensor>& actual, const std::vector<PlainTensor>& expected,
                 bool bits) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    if (bits && i == 0) {
      EXPECT_EQ(actual[i].values, expected[i].values) << i;
    } else {
      EXPECT_LE(relative_difference(actual[i].values, expected[i].values), rounding) << i;
    }
  }
}

// The stand-in adds products in one order, so that only a wrong index can make a difference. (The
// order in which our own kernels add the gradient of a bias depends on the layout.)
TEST_F(Tf32, ConvolutionsInNhwcEqualThoseInNchw) {
  for (const LayerSetup& first : tf32_setups()) {
    LayerSetup last = first;
    last.input_layout = last.output_layout = TANDEM_NHWC;
    SCOPED_TRACE(first.type + " " + to_string(first.weights[0].shape));
    LayerRun expected(first), actual(last);
    const std::vector<PlainTensor> y = expected.forward();
    expect_same(actual.forward(), y, is_stand_in());
    const std::vector<PlainTensor> dy{random_tensor(y[0].shape, 4)};
    expect_same(actual.backward_data(dy), expected.backward_data(dy), is_stand_in());
    const std::vector<PlainTensor> dw = expected.backward_weights(dy);
    expect_same(actual.backward_weights(dy), dw, is_stand_in());
    expect_same(actual.backward_weights(dy, dw), expected.backward_weights(dy, dw), is_stand_in());
  }
}

TEST_F(Tf32, ConvolutionsInNhwcAreMeasuredAndReportedLikeOthers) {
  for (LayerSetup setup : tf32_setups()) {
    setup.input_layout = setup.output_layout = TANDEM_NHWC;
    LayerRun plain(setup);
    setup.flags |= TANDEM_MAY_MEASURE;
    LayerRun measured(setup);
    EXPECT_THAT(measured.algorithm(),
                testing::AllOf(testing::StartsWith("measured: cuDNN forward engine "),
                               testing::HasSubstr(", backward data engine "),
                               testing::HasSubstr(", backward weights engine ")));
    expect_same(measured.forward(), plain.forward(), is_stand_in());
  }
}

// Factors have 11 significant bits if the binding's flag allows it, otherwise all of them.
TEST_F(Tf32, FactorsAreRoundedOnlyIfTheUserAllowsIt) {
  LayerSetup product{
      .type = "InnerProduct",
      .parameters = {{"num_output", "13"}},
      .inputs = {random_tensor({1301, 11, 1, 1}, 3)},
      .weights = {random_tensor({13, 11, 1, 1}, 2), random_tensor({13, 1, 1, 1}, 3)}};
  product.flags |= TANDEM_ALLOWS_TF32;
  std::vector<LayerSetup> all = tf32_setups();
  all.push_back(product);
  for (const LayerSetup& setup : all) {
    for (const LayerSetup& allowed : in_every_layout(setup)) {
      SCOPED_TRACE(setup.type + " " + layout_text(allowed));
      LayerSetup kept = setup;
      kept.flags &= ~uint32_t{TANDEM_ALLOWS_TF32};
      LayerRun exact(kept), rounded(allowed);
      const auto expect_rounded = [](const PlainTensor& actual, const PlainTensor& expected) {
        const double error = relative_difference(actual.values, expected.values);
        // The libraries of a GPU may round, but need not for odd shapes.
        if (is_stand_in()) {
          EXPECT_GT(error, 1e-5);
        }
        EXPECT_LT(error, rounding);
      };
      const std::vector<PlainTensor> y = exact.forward();
      expect_rounded(rounded.forward()[0], y[0]);
      expect_rounded(rounded.backward_data(y)[0], exact.backward_data(y)[0]);
      expect_rounded(rounded.backward_weights(y)[0], exact.backward_weights(y)[0]);
    }
  }
}

}  // namespace
}  // namespace tandem::test
