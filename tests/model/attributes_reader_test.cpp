#include "core/model/file/attributes_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/model/net_test.h"

namespace tandem {
namespace {

using namespace test;
using testing::ElementsAre;
using testing::HasSubstr;

std::shared_ptr<const Attributes> read(const std::string& type, const std::string& more) {
  const NetDefinition net = parse_definition(layer("x", type, "data", "x", "\n" + more));
  return read_attributes(net.layers.at(0), fake_registry().layer_type(type));
}
std::string failure_of_attributes(const std::string& type, const std::string& more) {
  return message_of([&] { (void)read(type, more); });
}

TEST(LayerAttributes, HoldTheUsersValuesAndTheDefaults) {
  const auto attributes =
      read("Convolution", "convolution_param { num_output: 4 kernel_size: 3 kernel_size: 5 }");
  EXPECT_EQ(attributes->integer("num_output"), 4);
  EXPECT_THAT(attributes->integers("kernel_size"), ElementsAre(3, 5));
  EXPECT_THAT(attributes->integers("stride"), ElementsAre(1));
  EXPECT_EQ(attributes->text("engine"), "DEFAULT");
  EXPECT_TRUE(attributes->is_set("num_output"));
  EXPECT_FALSE(attributes->is_set("stride"));
}

TEST(LayerAttributes, SeveralBlocksOfOneNameCountAsOne) {
  const auto attributes = read("Convolution",
                               "convolution_param { num_output: 4 } "
                               "convolution_param { kernel_size: 3 }");
  EXPECT_EQ(attributes->integer("num_output"), 4);
  EXPECT_THAT(attributes->integers("kernel_size"), ElementsAre(3));
}

TEST(LayerAttributes, AParameterWithoutABlockIsAFieldOfTheLayer) {
  EXPECT_EQ(read("test.Strange", "flavour: 7")->integer("flavour"), 7);
  EXPECT_EQ(read("test.Strange", "")->integer("flavour"), 3);
}

TEST(LayerAttributes, ABlockMayBeInsideABlock) {
  const auto attributes =
      read("test.Nested", "nested_param { shape { dim: 0 dim: -1 } axis: 1 shape { dim: 3 } }");
  EXPECT_THAT(attributes->integers("dim"), ElementsAre(0, -1, 3));
  EXPECT_EQ(attributes->integer("axis"), 1);
  EXPECT_THAT(failure_of_attributes("test.Nested", "nested_param { shape { dims: 0 } }"),
              HasSubstr("unknown field of nested_param.shape 'dims' (did you mean 'dim'?)"));
  EXPECT_THAT(failure_of_attributes("test.Nested", "nested_param { shap { dim: 0 } }"),
              HasSubstr("unknown field of nested_param 'shap' (did you mean 'shape'?)"));
  EXPECT_THAT(failure_of_attributes("test.Nested", "nested_param { shape: 3 }"),
              HasSubstr("shape is '3', but must be a block"));
}

TEST(LayerAttributes, AnUnknownFieldOfABlockSuggestsTheNearName) {
  EXPECT_EQ(failure_of_attributes("Dropout", "dropout_param { dropout_ration: 0.5 }"),
            "layer 'x' (Dropout): unknown field of dropout_param 'dropout_ration' (did you mean "
            "'dropout_ratio'?); known: dropout_ratio (net.prototxt:2:17)");
}

TEST(LayerAttributes, AnUnknownBlockNamesTheBlocksTheTypeReads) {
  EXPECT_EQ(failure_of_attributes("Dropout", "dropuot_param { dropout_ratio: 0.5 }"),
            "layer 'x' (Dropout): unknown block 'dropuot_param' (did you mean 'dropout_param'?); "
            "Dropout reads dropout_param (net.prototxt:2:1)");
  EXPECT_EQ(failure_of_attributes("Softmax", "softmax_param { axis: 1 }"),
            "layer 'x' (Softmax): unknown block 'softmax_param'; Softmax has no parameters "
            "(net.prototxt:2:1)");
}

TEST(LayerAttributes, AnUnknownFieldOfTheLayerSuggestsTheNearName) {
  EXPECT_THAT(failure_of_attributes("test.Strange", "flavor: 7"),
              HasSubstr("layer 'x' (test.Strange): unknown field 'flavor' (did you mean "
                        "'flavour'?)"));
  EXPECT_THAT(failure_of_attributes("ReLU", "buttom: 'x'"), HasSubstr("(did you mean 'bottom'?)"));
}

TEST(LayerAttributes, AMissingParameterIsNamedWithItsMeaning) {
  EXPECT_EQ(failure_of_attributes("Convolution", "convolution_param { kernel_size: 3 }"),
            "layer 'x' (Convolution): convolution_param.num_output is required: output channels "
            "(net.prototxt:1)");
}

TEST(LayerAttributes, AWrongValueIsReportedWithItsLocation) {
  EXPECT_EQ(failure_of_attributes("Dropout", "dropout_param {\n dropout_ratio: 1.5 }"),
            "layer 'x' (Dropout): dropout_ratio is '1.5', but must be from 0 to 0.99 "
            "(net.prototxt:3:2)");
  EXPECT_THAT(failure_of_attributes("Dropout", "dropout_param { dropout_ratio { } }"),
              HasSubstr("dropout_ratio is a block, but must be a single value"));
  EXPECT_THAT(failure_of_attributes("Dropout", "dropout_param: 0.5"),
              HasSubstr("dropout_param is '0.5', but must be a block: dropout_param { ... }"));
  EXPECT_THAT(
      failure_of_attributes("Dropout", "dropout_param { dropout_ratio: 0.1 dropout_ratio: 0.2 }"),
      HasSubstr("written once"));
}

Filler filler_of(const std::string& text) {
  return read("Convolution",
              "convolution_param { num_output: 1 kernel_size: 1 weight_filler { " + text + " } }")
      ->filler("weight_filler");
}
std::string filler_failure(const std::string& text) {
  return message_of([&] { (void)filler_of(text); });
}

TEST(LayerAttributes, AFillerIsReadWithCaffesFields) {
  const Filler gaussian = filler_of("type: 'gaussian' mean: 1 std: 0.5");
  EXPECT_EQ(gaussian.type, "gaussian");
  EXPECT_EQ(gaussian.mean, 1);
  EXPECT_EQ(gaussian.std, 0.5);
  EXPECT_EQ(filler_of("type: 'msra' variance_norm: AVERAGE").variance_norm, "AVERAGE");
  EXPECT_EQ(filler_of("type: 'uniform' min: -1 max: 2").min, -1);
  EXPECT_EQ(filler_of("value: 3").type, "constant");
}

TEST(LayerAttributes, AFillerRefusesUnknownFieldsAndWords) {
  EXPECT_EQ(filler_failure("type: 'trilinear'"),
            "layer 'x' (Convolution): weight_filler: type is 'trilinear', but must be one of "
            "constant, uniform, gaussian, positive_unitball, xavier, msra, bilinear (did you mean "
            "'bilinear'?) (net.prototxt:2:66)");
  EXPECT_THAT(filler_failure("tpye: 'msra'"), HasSubstr("(did you mean 'type'?)"));
  EXPECT_THAT(filler_failure("type: 'gaussian' sparse: -2"),
              HasSubstr("sparse is '-2', but must be at least 0, or -1 for all"));
  EXPECT_THAT(filler_failure("type: 'gaussian' std: -1"), HasSubstr("at least 0"));
  EXPECT_THAT(filler_failure("type: 'uniform' min: 2 max: 1"), HasSubstr("min 2 is above max 1"));
}

}  // namespace
}  // namespace tandem
