// A ReLU that is fused into a convolution on the cpu, and the gradient of one before it, give the
// bits of a separate ReLU layer, whichever engine computes the convolution.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/layers/fused_relu.h"
#include "tests/support/computable.h"

namespace tandem::test {
namespace {

struct ConvolutionCase {
  const char* engine;  // in the name of the algorithm, in some layout
  Shape input;
  int64_t outputs = 32, kernel = 3, pad = 1, stride = 1, dilation = 1, group = 1;
  bool is_first = false;  // nobody wants the gradient by the input
};

std::vector<ConvolutionCase> all_engines() {
  return {
      {.engine = "F(4x4, 3x3)", .input = {4, 32, 16, 16}, .outputs = 48},
      {.engine = "F(4x4, 3x3)", .input = {4, 21, 15, 17}, .outputs = 37},
      {.engine = "F(4x4, 3x3)", .input = {4, 64, 17, 15}, .group = 2},
      {.engine = "F(2x2, 3x3)", .input = {64, 16, 1, 9}},
      {.engine = "F(1x1, 3x3)", .input = {64, 16, 1, 1}, .outputs = 16},
      {.engine = "F(2x2, 5x5)", .input = {8, 32, 8, 7}, .kernel = 5, .pad = 2},
      {.engine = "dilation 2", .input = {3, 16, 19, 24}, .pad = 2, .dilation = 2},
      {.engine = "folded",
       .input = {4, 3, 67, 67},
       .kernel = 11,
       .pad = 0,
       .stride = 4,
       .is_first = true},
      {.engine = "depthwise", .input = {2, 16, 9, 8}, .outputs = 16, .group = 16},
      {.engine = "vectors of pixels", .input = {2, 16, 9, 8}, .outputs = 3},
      {.engine = "vectors of pixels", .input = {2, 12, 9, 8}, .outputs = 12, .group = 4},
      {.engine = "forward", .input = {2, 16, 9, 8}, .kernel = 1, .pad = 0},
      {.engine = "forward", .input = {2, 16, 40, 33}, .stride = 2},  // on two threads
  };
}

// Of one output channel the sums are so small that those below zero round to -0 in bfloat16.
LayerSetup setup_of(const ConvolutionCase& c, bool has_bias, int32_t dtype) {
  PlainTensor weights = random_tensor({c.outputs, c.input.c / c.group, c.kernel, c.kernel}, 5);
  PlainTensor biases = random_tensor({c.outputs, 1, 1, 1}, 6);
  const size_t of_channel = weights.values.size() / static_cast<size_t>(c.outputs);
  for (size_t i = of_channel; i < 2 * of_channel; ++i) weights.values[i] *= 1e-41F;
  biases.values[1] = -0.0F;
  LayerSetup setup{.type = "Convolution",
                   .parameters = {{"num_output", std::to_string(c.outputs)},
                                  {"kernel_size", std::to_string(c.kernel)},
                                  {"pad", std::to_string(c.pad)},
                                  {"stride", std::to_string(c.stride)},
                                  {"dilation", std::to_string(c.dilation)},
                                  {"group", std::to_string(c.group)},
                                  {"bias_term", has_bias ? "true" : "false"}},
                   .inputs = {strange_tensor(c.input, 1)},
                   .weights = {weights}};
  if (has_bias) setup.weights.push_back(biases);
  if (c.is_first) setup.flags &= ~TANDEM_WANTS_BACKWARD_DATA;
  setup.input_dtype = setup.output_dtype = dtype;
  return setup;
}

class FusedReluOfConvolutions : public testing::TestWithParam<int32_t> {
 protected:
  void SetUp() override {
    if (!kernels_run_on_a_cpu()) GTEST_SKIP() << "engines of the cpu";
    const std::string reason = no_products(GetParam());
    if (!reason.empty()) GTEST_SKIP() << reason;
  }
};

INSTANTIATE_TEST_SUITE_P(Dtypes, FusedReluOfConvolutions,
                         testing::Values(TANDEM_FLOAT32, TANDEM_BFLOAT16),
                         [](const testing::TestParamInfo<int32_t>& info) {
                           return std::string(dtype_name(info.param));
                         });

TEST_P(FusedReluOfConvolutions, OutputsEqualThoseOfASeparateRelu) {
  for (const ConvolutionCase& c : all_engines()) {
    for (const bool has_bias : {true, false}) {
      for (const LayerSetup& one : in_every_layout(setup_of(c, has_bias, GetParam()))) {
        SCOPED_TRACE(c.engine + (" " + layout_text(one)));
        const PlainTensor separate = through_relu(LayerRun(one).forward()[0], one);
        EXPECT_EQ(bits(LayerRun(with_relu(one)).forward()[0]), bits(separate));
      }
    }
  }
}

TEST_P(FusedReluOfConvolutions, TheGradientOfOneBeforeEqualsThatOfASeparateRelu) {
  for (const ConvolutionCase& c : all_engines()) {
    if (c.is_first) continue;
    LayerSetup setup = setup_of(c, true, GetParam());
    for (float& value : setup.inputs[0].values) value = value < 0 ? 0.0F : value;
    for (const LayerSetup& one : in_every_layout(setup)) {
      SCOPED_TRACE(c.engine + (" " + layout_text(one)));
      LayerSetup after = one;
      after.activation_before = TANDEM_ACTIVATION_RELU;
      LayerRun plain(one), fused(after);
      const PlainTensor dy = strange_tensor(plain.output_shapes()[0], 11);
      LayerSetup relu{.type = "ReLU", .inputs = one.inputs};
      relu.input_layout = relu.output_layout = one.input_layout;
      relu.input_dtype = relu.output_dtype = one.input_dtype;
      LayerRun separate(relu);
      for (LayerRun* run : {&plain, &fused, &separate}) run->forward();
      const PlainTensor dx = plain.backward_data({dy})[0];
      EXPECT_EQ(bits(fused.backward_data({dy})[0]), bits(separate.backward_data({dx})[0]));
      EXPECT_EQ(bits(fused.backward_weights({dy})[0]), bits(plain.backward_weights({dy})[0]));
    }
  }
}

// Otherwise the tests above would leave one out.
TEST_P(FusedReluOfConvolutions, AreTriedWithWinogradsAlgorithms) {
  const char* cap = std::getenv("ONEDNN_MAX_CPU_ISA");
  if (GetParam() != TANDEM_FLOAT32 && (cap == nullptr || std::string(cap) != "AVX512_CORE")) {
    GTEST_SKIP() << "bfloat16 is multiplied as float32 with ONEDNN_MAX_CPU_ISA=AVX512_CORE only";
  }
  for (const ConvolutionCase& c : all_engines()) {
    const std::string engine = c.engine;
    if (!engine.starts_with("F(") && engine != "folded" && engine != "dilation 2") continue;
    EXPECT_THAT(LayerRun(setup_of(c, true, GetParam())).algorithm(), testing::HasSubstr(engine));
  }
}

}  // namespace
}  // namespace tandem::test
