// Kernels for GPUs fold the input of a strided convolution with few channels where no gradient of
// the input is wanted (layers/convolution/folded_input_cuda.h). Its results are compared with those
// of the same kernel where one is wanted, which are not folded.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/support/computable.h"
#include "tests/support/reference_check.h"

namespace tandem::test {
namespace {

struct Case {
  int64_t channels, outputs;
  std::vector<std::pair<std::string, std::string>> window;
  int64_t kernel_h, kernel_w, h, w;
};

// The first layers of AlexNet, of ResNet and of MobileNet; one channel; a window that is not
// square, and whose stride does not divide it; an image that it does not cover whole.
std::vector<Case> cases() {
  return {{3, 8, {{"kernel_size", "11"}, {"stride", "4"}}, 11, 11, 27, 31},
          {3, 8, {{"kernel_size", "7"}, {"stride", "2"}, {"pad", "3"}}, 7, 7, 14, 12},
          {3, 16, {{"kernel_size", "3"}, {"stride", "2"}, {"pad", "1"}}, 3, 3, 9, 10},
          {1, 5, {{"kernel_size", "5"}, {"stride", "3"}, {"pad", "2"}}, 5, 5, 13, 8},
          {4,
           6,
           {{"kernel_h", "4"},
            {"kernel_w", "5"},
            {"stride_h", "2"},
            {"stride_w", "3"},
            {"pad_h", "1"},
            {"pad_w", "2"}},
           4,
           5,
           11,
           14},
          {2, 4, {{"kernel_size", "2"}, {"stride", "2"}}, 2, 2, 7, 5}};
}

LayerSetup setup_of(const Case& c, int32_t dtype) {
  LayerSetup setup{
      .type = "Convolution",
      .parameters = c.window,
      .inputs = {random_tensor({3, c.channels, c.h, c.w}, 1)},
      .weights = {random_tensor({c.outputs, c.channels, c.kernel_h, c.kernel_w}, 2, 0.2F),
                  random_tensor({c.outputs, 1, 1, 1}, 3)}};
  setup.parameters.emplace_back("num_output", std::to_string(c.outputs));
  setup.input_layout = setup.output_layout = TANDEM_NHWC;
  setup.input_dtype = setup.output_dtype = dtype;
  if (dtype == TANDEM_FLOAT32) setup.flags |= TANDEM_ALLOWS_TF32;
  return setup;
}

class FoldedInputs : public testing::TestWithParam<int32_t> {
 protected:
  void SetUp() override {
    if (kernels_run_on_a_cpu()) GTEST_SKIP() << "TANDEM_TEST_KERNELS names no kernels for GPUs";
    const std::string reason =
        not_computable(GetParam(), GetParam() == TANDEM_FLOAT32 ? uint32_t{TANDEM_ALLOWS_TF32} : 0);
    if (!reason.empty()) GTEST_SKIP() << reason;
  }
  // Both results are rounded to 8 or 11 significant bits: in 16 bits at the end, and those of a
  // convolution before its bias is added; in TF32 their factors.
  static double bound() { return 4.0 / (GetParam() == TANDEM_BFLOAT16 ? 256 : 2048); }

  static void expect_near(const std::vector<PlainTensor>& actual,
                          const std::vector<PlainTensor>& expected) {
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t i = 0; i < actual.size(); ++i) {
      EXPECT_LE(relative_difference(actual[i].values, expected[i].values), bound()) << i;
    }
  }
};

TEST_P(FoldedInputs, GiveTheSameOutputsAndWeightGradients) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(fmt::format("{} channels, kernel {}x{}", c.channels, c.kernel_h, c.kernel_w));
    const LayerSetup plain = setup_of(c, GetParam());
    LayerSetup folded = plain;
    folded.flags &= ~static_cast<uint32_t>(TANDEM_WANTS_BACKWARD_DATA);
    LayerRun expected(plain), actual(folded);
    const std::vector<PlainTensor> y = expected.forward();
    expect_near(actual.forward(), y);
    const std::vector<PlainTensor> dy{random_tensor(y[0].shape, 4)};
    const std::vector<PlainTensor> dw = expected.backward_weights(dy);
    expect_near(actual.backward_weights(dy), dw);
    expect_near(actual.backward_weights(dy, dw), expected.backward_weights(dy, dw));
  }
}

INSTANTIATE_TEST_SUITE_P(Dtypes, FoldedInputs,
                         testing::Values(TANDEM_FLOAT32, TANDEM_BFLOAT16, TANDEM_FLOAT16),
                         [](const auto& info) { return std::string(dtype_name(info.param)); });

}  // namespace
}  // namespace tandem::test
