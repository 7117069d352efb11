// A ReLU that is fused into a kernel (activations of tandem_binding) gives the bits of a separate
// ReLU layer, also for NaN and for values that round to -0. It does not change the backward passes,
// except of kernels that apply its gradient, too.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/layers/fused_relu.h"
#include "tests/support/computable.h"

namespace tandem::test {
namespace {

const Shape image{3, 16, 5, 4};

std::vector<LayerSetup> fused_setups() {
  const PlainTensor x = strange_tensor(image, 1), y = strange_tensor(image, 2);
  const Shape channels{16, 1, 1, 1};
  const PlainTensor a = random_tensor(channels, 3), b = random_tensor(channels, 4);
  const PlainTensor small{channels, std::vector<float>(16, 1e-4F)};  // negative results round to -0
  std::vector<LayerSetup> result;
  for (const char* bias : {"true", "false"}) {
    const auto with_bias = [&](LayerSetup setup, const PlainTensor& values) {
      setup.parameters.emplace_back("bias_term", bias);
      if (bias == std::string("true")) setup.weights.push_back(values);
      result.push_back(std::move(setup));
    };
    with_bias({.type = "Convolution",
               .parameters = {{"num_output", "16"}, {"kernel_size", "3"}, {"pad", "1"}},
               .inputs = {x},
               .weights = {random_tensor({16, 16, 3, 3}, 5)}},
              b);
    with_bias({.type = "Deconvolution",
               .parameters = {{"num_output", "16"}, {"kernel_size", "2"}},
               .inputs = {x},
               .weights = {random_tensor({16, 16, 2, 2}, 5)}},
              b);
    with_bias({.type = "InnerProduct",
               .parameters = {{"num_output", "10"}},
               .inputs = {x},
               .weights = {random_tensor({10, 16, 5, 4}, 5)}},
              random_tensor({10, 1, 1, 1}, 6));
    with_bias({.type = "Scale", .inputs = {x}, .weights = {a}}, b);
    with_bias({.type = "Scale", .inputs = {x}, .weights = {small}},
              {channels, std::vector<float>(16, -0.0F)});
  }
  const std::vector<std::pair<std::string, std::string>> every_axis{{"axis", "0"}};
  result.push_back({.type = "Scale", .parameters = every_axis, .inputs = {x, y}});
  result.push_back({.type = "Bias", .inputs = {x}, .weights = {b}});
  result.push_back({.type = "Bias", .parameters = every_axis, .inputs = {x, y}});
  for (const char* operation : {"SUM", "PROD", "MAX"}) {
    result.push_back(
        {.type = "Eltwise", .parameters = {{"operation", operation}}, .inputs = {x, y}});
    result.push_back({.type = "Eltwise",
                      .parameters = {{"operation", operation}},
                      .inputs = {x, y, strange_tensor(image, 9)}});
  }
  result.push_back(
      {.type = "Eltwise", .parameters = {{"coeff", "-0.5"}, {"coeff", "2"}}, .inputs = {x, y}});
  result.push_back({.type = "BatchNorm",
                    .inputs = {x},
                    .weights = {a, PlainTensor{channels, std::vector<float>(16, 2.0F)},
                                PlainTensor{{1, 1, 1, 1}, {1.0F}}},
                    .phase = TANDEM_TEST,
                    .flags = 0});
  const std::vector<PlainTensor> sums{a, PlainTensor{channels, std::vector<float>(16, 2.0F)},
                                      PlainTensor{{1, 1, 1, 1}, {1.0F}}, small, b};
  result.push_back(
      {.type = "BatchNormScale", .inputs = {x}, .weights = sums, .phase = TANDEM_TEST, .flags = 0});
  result.push_back(
      {.type = "BatchNormScale", .inputs = {random_tensor(image, 12)}, .weights = sums});
  return result;
}

// Kernels of such layers refuse a dtype that the CPU does not multiply.
bool multiplies(const LayerSetup& setup) {
  return setup.type == "Convolution" || setup.type == "Deconvolution" ||
         setup.type == "InnerProduct";
}

class FusedRelu : public testing::TestWithParam<int32_t> {
 protected:
  // The setups in the dtype, in all layouts that the kernels offer for it.
  static std::vector<LayerSetup> offered() {
    std::vector<LayerSetup> result;
    if (!not_computable(GetParam()).empty()) return result;
    for (LayerSetup setup : fused_setups()) {
      const tandem_kernel& kernel = kernel_of(setup);
      if (!knows(kernel, GetParam()) || !can_fuse(setup)) continue;
      if (multiplies(setup) && !no_products(GetParam()).empty()) continue;
      setup.input_dtype = setup.output_dtype = GetParam();
      for (const LayerSetup& one : in_every_layout(setup)) result.push_back(one);
    }
    return result;
  }
};

INSTANTIATE_TEST_SUITE_P(Dtypes, FusedRelu,
                         testing::Values(TANDEM_FLOAT32, TANDEM_BFLOAT16, TANDEM_FLOAT16),
                         [](const testing::TestParamInfo<int32_t>& info) {
                           return std::string(dtype_name(info.param));
                         });

TEST_P(FusedRelu, OutputsEqualThoseOfASeparateRelu) {
  for (const LayerSetup& setup : offered()) {
    SCOPED_TRACE(setup.type + " " + layout_text(setup));
    const PlainTensor separate = through_relu(LayerRun(setup).forward()[0], setup);
    const PlainTensor actual = LayerRun(with_relu(setup)).forward()[0];
    EXPECT_EQ(bits(actual), bits(separate));
  }
}

TEST_P(FusedRelu, OutputsInPlaceEqualThoseOfASeparateRelu) {
  for (LayerSetup setup : offered()) {
    const tandem_layer_type& type = layer_registry().layer_type(setup.type);
    if ((type.traits & TANDEM_IN_PLACE) == 0) continue;
    setup.flags |= TANDEM_RUNS_IN_PLACE;
    SCOPED_TRACE(setup.type + " " + layout_text(setup));
    const PlainTensor separate = through_relu(LayerRun(setup).forward()[0], setup);
    EXPECT_EQ(bits(LayerRun(with_relu(setup)).forward()[0]), bits(separate));
  }
}

TEST_P(FusedRelu, BackwardPassesAreUnchangedExceptOfKernelsThatApplyItsGradient) {
  for (const LayerSetup& setup : offered()) {
    if (setup.flags == 0 || is_relu_among(kernel_of(setup).fused_gradients)) continue;
    SCOPED_TRACE(setup.type + " " + layout_text(setup));
    LayerRun plain(setup), fused(with_relu(setup));
    const PlainTensor gradient = random_tensor(plain.output_shapes()[0], 11);
    plain.forward();
    fused.forward();
    const auto expected = plain.backward_data({gradient}), actual = fused.backward_data({gradient});
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t i = 0; i < actual.size(); ++i) EXPECT_EQ(bits(actual[i]), bits(expected[i])) << i;
    if (setup.weights.empty()) continue;
    const auto weights = plain.backward_weights({gradient});
    const auto same = fused.backward_weights({gradient});
    for (size_t i = 0; i < same.size(); ++i) EXPECT_EQ(bits(same[i]), bits(weights[i])) << i;
  }
}

// BatchNormScale in training, and with the statistics of its weights.
std::vector<LayerSetup> norms() {
  const Shape channels{16, 1, 1, 1};
  LayerSetup norm{.type = "BatchNormScale",
                  .inputs = {random_tensor(image, 12)},
                  .weights = {random_tensor(channels, 3),
                              {channels, std::vector<float>(16, 2.0F)},
                              {{1, 1, 1, 1}, {1.0F}},
                              random_tensor(channels, 5),
                              random_tensor(channels, 6)}};
  LayerSetup kept = norm, per_device = norm;
  kept.parameters = {{"use_global_stats", "true"}};
  per_device.parameters = {{"per_device", "true"}};
  return {norm, kept, per_device};
}

TEST_P(FusedRelu, AGradientThatTheKernelAppliesEqualsThatOfASeparateRelu) {
  if (!not_computable(GetParam()).empty()) GTEST_SKIP() << not_computable(GetParam());
  const tandem_kernel& kernel = kernel_of({.type = "BatchNormScale"});
  if (!is_relu_among(kernel.fused_gradients) || !knows(kernel, GetParam())) {
    GTEST_SKIP() << "the BatchNormScale kernel of this device does not apply it";
  }
  for (LayerSetup setup : norms()) {
    setup.input_dtype = setup.output_dtype = GetParam();
    for (const LayerSetup& one : in_every_layout(setup)) {
      SCOPED_TRACE(testing::PrintToString(setup.parameters) + " " + layout_text(one));
      LayerRun plain(one), fused(with_relu(one));
      const PlainTensor y = plain.forward()[0];
      fused.forward();
      const PlainTensor gradient = random_tensor(y.shape, 11);
      LayerRun relu(relu_after(one, y));
      relu.forward();
      const PlainTensor before = relu.backward_data({gradient})[0];
      for (const PlainTensor& given : {gradient, before}) {  // a second time it changes nothing
        EXPECT_EQ(fused.backward_data({given})[0].values, plain.backward_data({before})[0].values);
        const auto actual = fused.backward_weights({given});
        const auto expected = plain.backward_weights({before});
        for (size_t i = 3; i < 5; ++i) EXPECT_EQ(actual[i].values, expected[i].values) << i;
      }
    }
  }
}

// Layers whose kernels may apply the gradient of a ReLU before them, with inputs that one made.
std::vector<LayerSetup> setups_after_relu() {
  PlainTensor x = strange_tensor({3, 16, 9, 8}, 1);
  for (float& value : x.values) value = value < 0 ? 0.0F : value;
  std::vector<LayerSetup> result;
  for (const uint32_t outputs : {1U, 2U, 3U, 70U}) {
    result.push_back({.type = "Split", .inputs = {x}, .output_count = outputs});
  }
  using Parameters = std::vector<std::pair<std::string, std::string>>;
  for (const char* pool : {"MAX", "AVE"}) {
    for (const Parameters& window :
         std::vector<Parameters>{{{"kernel_size", "2"}, {"stride", "2"}},
                                 {{"kernel_size", "3"}, {"stride", "2"}, {"pad", "1"}},
                                 {{"kernel_size", "3"}},
                                 {{"kernel_h", "9"}, {"kernel_w", "5"}, {"stride", "3"}},
                                 {{"kernel_h", "9"}, {"kernel_w", "8"}},
                                 {{"global_pooling", "true"}}}) {
      LayerSetup setup{.type = "Pooling", .parameters = {{"pool", pool}}, .inputs = {x}};
      setup.parameters.insert(setup.parameters.end(), window.begin(), window.end());
      result.push_back(setup);
    }
  }
  for (const char* size : {"3", "5", "7"}) {
    for (const char* region : {"ACROSS_CHANNELS", "WITHIN_CHANNEL"}) {
      result.push_back({.type = "LRN",
                        .parameters = {{"local_size", size}, {"norm_region", region}},
                        .inputs = {x}});
    }
  }
  return result;
}

TEST_P(FusedRelu, TheGradientOfOneBeforeEqualsThatOfASeparateRelu) {
  if (!not_computable(GetParam()).empty()) GTEST_SKIP() << not_computable(GetParam());
  int tried = 0;
  const bool has_products = no_products(GetParam()).empty();
  for (LayerSetup setup : setups_after_relu()) {
    if (setup.type == "Pooling" && !has_products) continue;  // by a library
    const tandem_kernel& kernel = kernel_of(setup);
    if (!is_relu_among(kernel.gradients_before)) continue;
    if (!knows(kernel, GetParam())) continue;
    setup.input_dtype = setup.output_dtype = GetParam();
    for (const LayerSetup& one : in_every_layout(setup)) {
      SCOPED_TRACE(setup.type + " " + testing::PrintToString(setup.parameters) + layout_text(one));
      LayerSetup after = one;
      after.activation_before = TANDEM_ACTIVATION_RELU;
      LayerRun plain(one), fused(after);
      const std::vector<PlainTensor> outputs = plain.forward();
      EXPECT_EQ(bits(fused.forward()[0]), bits(outputs[0]));
      std::vector<PlainTensor> gradients;
      for (const PlainTensor& output : outputs) {
        gradients.push_back(random_tensor(output.shape, 20 + static_cast<int>(gradients.size())));
      }
      LayerSetup relu{.type = "ReLU", .inputs = one.inputs};
      relu.input_layout = relu.output_layout = one.input_layout;
      relu.input_dtype = relu.output_dtype = one.input_dtype;
      LayerRun separate(relu);
      separate.forward();
      const PlainTensor sum = plain.backward_data(gradients)[0];
      EXPECT_EQ(bits(fused.backward_data(gradients)[0]), bits(separate.backward_data({sum})[0]));
      ++tried;
    }
  }
  if (tried == 0) GTEST_SKIP() << "no kernel of this device that applies it knows the dtype";
}

TEST(FusedReluOfOneLayer, NanStaysNanAndNegativeNumbersBecomeZero) {
  const Shape shape{1, 1, 2, 4};
  const float most = std::numeric_limits<float>::max();
  LayerSetup sum{.type = "Eltwise",
                 .inputs = {{shape, {NAN, -0.0F, -1, 2, -INFINITY, INFINITY, -most, INFINITY}},
                            {shape, {1, -0.0F, 0, 0, 1, 1, -most, -INFINITY}}}};
  if (!can_fuse(sum)) GTEST_SKIP() << "the Eltwise kernel of this device cannot fuse a ReLU";
  const std::vector<float> y = LayerRun(with_relu(sum)).forward()[0].values;
  EXPECT_TRUE(std::isnan(y[0]));
  EXPECT_TRUE(y[1] == 0 && std::signbit(y[1])) << "the value of x < 0 ? 0 : x";
  EXPECT_TRUE(y[2] == 0 && !std::signbit(y[2]));
  EXPECT_EQ(y[3], 2);
  EXPECT_EQ(y[4], 0);
  EXPECT_EQ(y[5], INFINITY);
  EXPECT_EQ(y[6], 0);
  EXPECT_TRUE(std::isnan(y[7]));
}

// See docs/guide/write_a_layer.md.
TEST(FusedReluOfOneLayer, IsOfferedByTheLayersThatOftenPrecedeOne) {
  for (const char* type : {"Scale", "BatchNorm", "BatchNormScale", "Eltwise", "Convolution"}) {
    EXPECT_TRUE(can_fuse({.type = type})) << type;
  }
  for (const char* type : {"Deconvolution", "InnerProduct", "Bias"}) {
    EXPECT_NE(can_fuse({.type = type}), kernels_run_on_a_cpu()) << type;
  }
}

// One of several slices of a matrix: the columns of the others stay unchanged.
TEST(FusedReluOfOneLayer, OfASliceChangesOnlyItsColumns) {
  LayerSetup setup{.type = "InnerProduct",
                   .parameters = {{"num_output", "10"}},
                   .inputs = {random_tensor({4, 6, 1, 1}, 1)},
                   .weights = {random_tensor({10, 6, 1, 1}, 2), random_tensor({10, 1, 1, 1}, 3)}};
  if (!can_fuse(setup)) GTEST_SKIP() << "the InnerProduct kernel of this device cannot fuse a ReLU";
  setup.slice_begin = 3;
  setup.slice_end = 7;
  setup.whole_outputs = true;
  setup.output_start = {{4, 10, 1, 1}, std::vector<float>(40, -1.0F)};
  const PlainTensor plain = LayerRun(setup).forward()[0];
  const PlainTensor actual = LayerRun(with_relu(setup)).forward()[0];
  for (int64_t i = 0; i < 40; ++i) {
    const float x = plain.values[static_cast<size_t>(i)];
    const bool is_own = i % 10 >= 3 && i % 10 < 7;
    EXPECT_EQ(actual.values[static_cast<size_t>(i)], is_own && x < 0 ? 0 : x) << i;
  }
}

}  // namespace
}  // namespace tandem::test
