// Which layers and tensors become bfloat16, and where conversions are inserted, with kernels that
// only report what they support (tests/model/plugins): Convolution, ReLU, Split and Square support
// bfloat16, InnerProduct, LRN, losses and metrics do not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/numbers/shape.h"
#include "core/model/net/initial_weights.h"
#include "tests/model/net_test.h"
#include "tests/support/message_of.h"

namespace tandem {
namespace {

using namespace test;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

NetOptions half_options(int32_t phase = TANDEM_TRAIN) {
  NetOptions options = small_options(phase);
  options.device_kind = "fake";
  options.precision = TANDEM_BFLOAT16;
  return options;
}

TEST(Dtypes, AreFloat32ByDefault) {
  NetOptions options = half_options();
  options.precision = TANDEM_FLOAT32;
  const Net net = build(data_layer + convolution("conv", "data", "conv", 32) +
                            layer("relu", "ReLU", "conv", "conv") +
                            inner_product_layer("ip", "conv", "ip") + loss_layer,
                        options);
  for (const Tensor& tensor : net.tensors) EXPECT_EQ(tensor.dtype, TANDEM_FLOAT32) << tensor.name;
}

TEST(Dtypes, AConversionAndAChangeOfLayoutAreOneReorder) {
  const Net net = build(data_layer + convolution("conv", "data", "conv", 32) +
                            layer("relu", "ReLU", "conv", "conv") +
                            inner_product_layer("ip", "conv", "ip") + loss_layer,
                        half_options());
  EXPECT_THAT(reorders(net), ElementsAre("data_reorder_bfloat16", "conv_reorder_NCHW_float32"));
  EXPECT_EQ(output_of(net, "data_reorder_bfloat16").dtype, TANDEM_BFLOAT16);
  EXPECT_EQ(output_of(net, "conv").dtype, TANDEM_BFLOAT16);
  EXPECT_EQ(output_of(net, "relu").dtype, TANDEM_BFLOAT16);
  EXPECT_TRUE(layer_of(net, "relu").runs_in_place);
  EXPECT_EQ(output_of(net, "conv_reorder_NCHW_float32").dtype, TANDEM_FLOAT32);
  EXPECT_TRUE(output_of(net, "conv_reorder_NCHW_float32").has_gradient);
  for (const std::string name : {"ip", "loss"}) {
    EXPECT_EQ(output_of(net, name).dtype, TANDEM_FLOAT32) << name;
  }
  EXPECT_EQ(net.tensors[net.data].dtype, TANDEM_FLOAT32);
  EXPECT_EQ(net.tensors[net.label].dtype, TANDEM_FLOAT32);
}

TEST(Dtypes, ALayerThatSupportsOnlyFloat32IsBetweenTwoConversions) {
  const Net net =
      build(data_layer + convolution("conv1", "data", "conv1", 32) +
                layer("norm", "LRN", "conv1", "norm") + convolution("conv2", "norm", "conv2", 32) +
                inner_product_layer("ip", "conv2", "ip") + loss_layer,
            half_options());
  EXPECT_THAT(reorders(net), ElementsAre("data_reorder_bfloat16", "conv1_reorder_float32",
                                         "norm_reorder_bfloat16", "conv2_reorder_NCHW_float32"));
  EXPECT_EQ(layer_of(net, "norm").dtype, TANDEM_FLOAT32);
}

TEST(Dtypes, AChainWithoutWeightsBetweenFloat32LayersStaysFloat32) {
  const Net net = build(
      data_layer + convolution("conv", "data", "conv", 32) + inner_product_layer("a", "conv", "a") +
          layer("relu", "ReLU", "a", "a") + inner_product_layer("ip", "a", "ip") + loss_layer,
      half_options());
  EXPECT_EQ(layer_of(net, "conv").dtype, TANDEM_BFLOAT16);
  EXPECT_EQ(layer_of(net, "relu").dtype, TANDEM_FLOAT32);
}

TEST(Dtypes, APredictionIsReadInFloat32) {
  const Net net =
      build(data_layer + convolution("ip", "data", "ip", 32), half_options(TANDEM_TEST));
  EXPECT_THAT(reorders(net), ElementsAre("data_reorder_bfloat16", "ip_reorder_NCHW_float32"));
  EXPECT_EQ(net.tensors[net.prediction].dtype, TANDEM_FLOAT32);
}

TEST(Dtypes, ALossReadsFloat32AndItsLabelsAsTheyAre) {
  const Net net =
      build(data_layer + convolution("ip", "data", "ip", 32) + loss_layer, half_options());
  EXPECT_EQ(layer_of(net, "loss").dtype, TANDEM_FLOAT32);
  EXPECT_EQ(layer_of(net, "loss").inputs[1], net.label);
  EXPECT_EQ(net.tensors[static_cast<size_t>(layer_of(net, "loss").inputs[0])].dtype,
            TANDEM_FLOAT32);
}

TEST(Dtypes, WeightsAndTheirOffsetsAreTheSameInBothPrecisions) {
  const std::string text = data_layer + convolution("conv", "data", "conv", 32) +
                           inner_product_layer("ip", "conv", "ip") + loss_layer;
  NetOptions whole = half_options();
  whole.precision = TANDEM_FLOAT32;
  const Net a = build(text, half_options()), b = build(text, whole);
  ASSERT_EQ(a.weights.size(), b.weights.size());
  for (size_t i = 0; i < a.weights.size(); ++i) EXPECT_EQ(a.weights[i].offset, b.weights[i].offset);
  EXPECT_EQ(initial_weights(a, 1), initial_weights(b, 1));
}

TEST(Dtypes, ANetWithoutALayerThatSupportsBfloat16IsRefused) {
  const std::string message = message_of([] {
    (void)build(data_layer + inner_product_layer("ip", "data", "ip") + loss_layer, half_options());
  });
  EXPECT_THAT(message, HasSubstr("none of its layers with weights computes in bfloat16 on device "
                                 "kind 'fake'"));
}

TEST(Dtypes, APrecisionIsOneOfFourWords) {
  EXPECT_EQ(parse_precision("float32"), TANDEM_FLOAT32);
  EXPECT_EQ(parse_precision("tf32"), tf32_precision);
  EXPECT_EQ(parse_precision("bfloat16"), TANDEM_BFLOAT16);
  EXPECT_EQ(parse_precision("float16"), TANDEM_FLOAT16);
  for (const char* text : {"", "half", "BFLOAT16", "TF32"}) {
    EXPECT_THAT(message_of([&] { (void)parse_precision(text); }),
                HasSubstr("there are float32, tf32, bfloat16 and float16"));
  }
}

TEST(Dtypes, Tf32IsRefusedWhereTheBackendDoesNotComputeInIt) {
  NetOptions options = half_options();
  options.precision = tf32_precision;
  EXPECT_THAT(message_of([&] {
                (void)build(data_layer + inner_product_layer("ip", "data", "ip") + loss_layer,
                            options);
              }),
              HasSubstr("precision tf32: fake devices do not support it"));
}

}  // namespace
}  // namespace tandem
