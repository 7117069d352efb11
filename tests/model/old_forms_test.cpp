// Caffe's V0 and V1 files in the current form, and refusals.
#include "core/model/file/old_forms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/model/net_test.h"

namespace tandem {
namespace {

using namespace test;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::string upgraded(const std::string& text) {
  return write_net(parse_definition(text));
}
std::string failure_of_old_form(const std::string& text) {
  return message_of([&] { (void)parse_definition(text); });
}

std::string norm(const std::string& type, const std::string& fields,
                 const std::string& rules = "param { lr_mult: 0 }") {
  return "name: 'n' layer { name: 'bn' type: '" + type + "' bottom: 'x' top: 'y' " + rules +
         " batch_norm_param { " + fields + " } }";
}

TEST(ScaleBias, OfABatchNormMakesItABatchNormScale) {
  const std::string expected = upgraded(norm("BatchNormScale", "eps: 0.1"));
  EXPECT_EQ(upgraded(norm("BatchNorm", "eps: 0.1 scale_bias: true")), expected);
  EXPECT_EQ(upgraded(norm("BatchNormScale", "scale_bias: true eps: 0.1")), expected);
  EXPECT_EQ(upgraded(norm("BatchNorm", "scale_bias: false eps: 0.1")),
            upgraded(norm("BatchNorm", "eps: 0.1")));
}

TEST(ScaleBias, IsTrueWhereAFillerIsGiven) {
  for (const std::string filler : {"scale_filler { value: 2 }", "bias_filler { value: 2 }"}) {
    EXPECT_EQ(upgraded(norm("BatchNorm", filler)), upgraded(norm("BatchNormScale", filler)));
  }
  EXPECT_THAT(failure_of_old_form(norm("BatchNorm", "scale_bias: false bias_filler { value: 2 }")),
              HasSubstr("layer 'bn' (BatchNorm): bias_filler is given, but scale_bias is 'false'"));
}

TEST(ScaleBias, OfAnotherValueIsRefused) {
  EXPECT_THAT(failure_of_old_form(norm("BatchNorm", "scale_bias: 7")),
              HasSubstr("layer 'bn' (BatchNorm): scale_bias is '7', but must be true or false"));
  EXPECT_THAT(failure_of_old_form(norm("BatchNormScale", "scale_bias: false")),
              HasSubstr("layer 'bn' (BatchNormScale): scale_bias is 'false', but must be true"));
}

TEST(ScaleBias, WrittenTwiceIsRefused) {
  const char* const expected = "scale_bias is 'true, false', but must be true or false, written";
  EXPECT_THAT(failure_of_old_form(norm("BatchNorm", "scale_bias: true scale_bias: false")),
              HasSubstr(expected));
  EXPECT_THAT(failure_of_old_form(
                  norm("BatchNorm", "scale_bias: true } batch_norm_param { scale_bias: false")),
              HasSubstr(expected));
}

TEST(ScaleBias, RefusesParamBlocksThatWouldTrainTheRunningSums) {
  const std::string of_a_scale = "param { lr_mult: 1 decay_mult: 0 } param { lr_mult: 2 }";
  EXPECT_THAT(failure_of_old_form(norm("BatchNorm", "scale_bias: true", of_a_scale)),
              AllOf(HasSubstr("layer 'bn' (BatchNorm): lr_mult is '1', but must be 0: the first "
                              "three param blocks are those of mean, variance and scale_factor"),
                    HasSubstr("the fourth and fifth those of weight and bias")));
  EXPECT_THAT(failure_of_old_form(norm("BatchNormScale", "", "param { lr_mult: 0 decay_mult: 3 }")),
              HasSubstr("decay_mult is '3'"));
  const std::string zeros = "param { lr_mult: 0 } param { lr_mult: 0 } param { decay_mult: 0 } ";
  EXPECT_EQ(failure_of_old_form(norm("BatchNormScale", "", zeros)), "");
  EXPECT_EQ(failure_of_old_form(norm("BatchNormScale", "", zeros + "param { lr_mult: 2 }")), "");
  EXPECT_EQ(failure_of_old_form(norm("BatchNorm", "", of_a_scale)), "");
}

const char* const oldest =
    "name: 'n'\n"
    "layers { layer { name: 'mnist' type: 'data' source: 'db' batchsize: 64 scale: 0.5\n"
    "  cropsize: 20 mirror: true meanfile: 'm' } top: 'data' top: 'label' }\n"
    "layers { layer { name: 'pad1' type: 'padding' pad: 2 } bottom: 'data' top: 'pad1' }\n"
    "layers { layer { name: 'conv1' type: 'conv' num_output: 8 kernelsize: 5 group: 2 stride: 1\n"
    "  biasterm: false weight_filler { type: 'xavier' } blobs_lr: 1 blobs_lr: 2\n"
    "  weight_decay: 1 weight_decay: 0 } bottom: 'pad1' top: 'conv1' }\n"
    "layers { layer { name: 'pool1' type: 'pool' kernelsize: 2 stride: 2 pool: AVE }\n"
    "  bottom: 'conv1' top: 'pool1' }\n"
    "layers { layer { name: 'ip' type: 'innerproduct' num_output: 4 } bottom: 'pool1' top: 'ip' }\n"
    "layers { layer { name: 'drop' type: 'dropout' dropout_ratio: 0.3 } bottom: 'ip' top: 'ip' }\n"
    "layers { layer { name: 'loss' type: 'softmax_loss' } bottom: 'ip' bottom: 'label' }\n";

const char* const same_in_the_current_form =
    "name: 'n'\n"
    "layer { name: 'mnist' type: 'Data' top: 'data' top: 'label' data_param { source: 'db'\n"
    "  batch_size: 64 } transform_param { scale: 0.5 crop_size: 20 mirror: true mean_file: 'm' } "
    "}\n"
    "layer { name: 'conv1' type: 'Convolution' bottom: 'data' top: 'conv1' param { lr_mult: 1\n"
    "  decay_mult: 1 } param { lr_mult: 2 decay_mult: 0 } convolution_param { num_output: 8\n"
    "  kernel_size: 5 group: 2 stride: 1 bias_term: false weight_filler { type: 'xavier' }\n"
    "  pad: 2 } }\n"
    "layer { name: 'pool1' type: 'Pooling' bottom: 'conv1' top: 'pool1' pooling_param {\n"
    "  kernel_size: 2 stride: 2 pool: AVE } }\n"
    "layer { name: 'ip' type: 'InnerProduct' bottom: 'pool1' top: 'ip' inner_product_param {\n"
    "  num_output: 4 } }\n"
    "layer { name: 'drop' type: 'Dropout' bottom: 'ip' top: 'ip' dropout_param {\n"
    "  dropout_ratio: 0.3 } }\n"
    "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' }\n";

TEST(V0Form, IsTheSameNetInTheCurrentForm) {
  EXPECT_EQ(upgraded(oldest), upgraded(same_in_the_current_form));
}

TEST(V0Form, KeepsTheLocations) {
  const NetDefinition net = parse_definition(oldest);
  EXPECT_EQ(to_string(net.layers.at(1).location), "net.prototxt:5");
}

TEST(V0Form, AFieldThatItsTypeDoesNotHaveIsNamed) {
  EXPECT_EQ(
      failure_of_old_form("layers { layer { name: 'r' type: 'relu' kernelsize: 3 } bottom: 'a' }"),
      "layer of the oldest form ('layers { layer { ... } }'): type 'relu' has no field "
      "'kernelsize' (net.prototxt:1:41)");
  EXPECT_THAT(failure_of_old_form("layers { layer { name: 'r' type: 'conv' kernel_size: 3 } }"),
              HasSubstr("'conv' has no field 'kernel_size' (did you mean 'kernelsize'?)"));
  EXPECT_THAT(failure_of_old_form("layers { layer { name: 'r' type: 'convv' } }"),
              HasSubstr("unknown type 'convv' (did you mean 'conv'?)"));
  EXPECT_THAT(
      failure_of_old_form("layers { layer { name: 'r' type: 'relu' } } layers { name: 's' }"),
      HasSubstr("has no layer { ... } inside"));
}

TEST(V0Form, APaddingLayerIsBeforeAConvolutionOrPooling) {
  EXPECT_THAT(failure_of_old_form(
                  "layers { layer { name: 'p' type: 'padding' pad: 1 } bottom: 'd' top: 'p' } "
                  "layers { layer { name: 'r' type: 'relu' } bottom: 'p' top: 'r' }"),
              HasSubstr("a padding layer can only be before one conv or pool layer, not 'relu'"));
  EXPECT_THAT(failure_of_old_form("layers { layer { name: 'p' type: 'padding' } bottom: 'd' }"),
              HasSubstr("a padding layer has one bottom, one top and a pad"));
}

TEST(V1Form, SharedWeightsHaveNamesAndModes) {
  const NetDefinition net = parse_definition(
      "layers { name: 'c' type: CONVOLUTION param: 'w' param: 'b' blob_share_mode: PERMISSIVE "
      "blobs_lr: 3 }");
  const auto& rules = net.layers[0].weight_rules;
  ASSERT_EQ(rules.size(), 2u);
  EXPECT_EQ(rules[0].name, "w");
  EXPECT_TRUE(rules[0].permissive);
  EXPECT_EQ(rules[0].rate_written, 3);
  EXPECT_EQ(rules[1].name, "b");
  EXPECT_FALSE(rules[1].permissive);
  EXPECT_FALSE(rules[1].rate_written.has_value());
}

TEST(V1Form, UnknownBlocksReachTheLayersPlugin) {
  const NetDefinition net = parse_definition(
      "layers { name: 'a' type: RELU bottom: 'data' top: 'a' acme_param { x: 3 } }");
  EXPECT_EQ(net.layers[0].body.find("acme_param")->message->find("x")->text, "3");
}

TEST(V1Form, IsNotMixedWithTheCurrentOne) {
  EXPECT_EQ(
      failure_of_old_form("layer { name: 'a' type: 'ReLU' }\nlayers { name: 'b' type: RELU }"),
      "net: has both 'layer' and 'layers', the current and the old form: write all as "
      "'layer', or all as 'layers' (net.prototxt:2:1)");
}

}  // namespace
}  // namespace tandem
