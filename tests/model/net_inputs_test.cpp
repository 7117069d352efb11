// The inputs of a net: data, labels and others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/model/net_test.h"

namespace tandem {
namespace {

using namespace test;
using testing::ElementsAre;
using testing::HasSubstr;
using Role = NetInput::Role;

std::vector<NetInput> inputs_of(const std::string& text) {
  return parse_definition(text).net_inputs(TANDEM_TRAIN);
}
std::string failure_of_inputs(const std::string& text) {
  return message_of([&] { (void)inputs_of(text); });
}
std::vector<Role> roles(const std::vector<NetInput>& inputs) {
  std::vector<Role> result;
  for (const NetInput& input : inputs) result.push_back(input.role);
  return result;
}

TEST(NetInputs, ADataLayerGivesDataAndMayGiveLabels) {
  EXPECT_THAT(roles(inputs_of(data_layer)), ElementsAre(Role::data, Role::label));
  EXPECT_THAT(roles(inputs_of("layer { name: 'd' type: 'HDF5Data' top: 'data' }")),
              ElementsAre(Role::data));
}

TEST(NetInputs, LabelsMayComeFromALayerOfTheirOwn) {
  const auto inputs = inputs_of(
      "layer { name: 'd' type: 'Data' top: 'data' } layer { name: 'l' type: 'Data' top: 'label' }");
  EXPECT_THAT(roles(inputs), ElementsAre(Role::data, Role::label));
}

TEST(NetInputs, ASecondPairOfDataAndLabelsHasTheRoleMore) {
  const auto inputs = inputs_of(data_layer +
                                "layer { name: 'q' type: 'Data' top: 'data_q' top: 'label_q' "
                                "transform_param { crop_size: 5 } }");
  EXPECT_THAT(roles(inputs), ElementsAre(Role::data, Role::label, Role::more, Role::more));
  EXPECT_EQ(to_string(inputs[2].shape), "1x0x5x5");
  EXPECT_EQ(to_string(inputs[3].shape), "1x1x1x1");
}

TEST(NetInputs, AnInputLayerHasTheShapeOfEachInput) {
  const auto inputs = inputs_of(
      "layer { name: 'in' type: 'Input' top: 'a' top: 'b' top: 'c' input_param {"
      " shape { dim: 9 dim: 3 dim: 4 dim: 5 } shape { dim: 9 dim: 7 } shape { dim: 9 } } }");
  EXPECT_THAT(roles(inputs), ElementsAre(Role::data, Role::more, Role::more));
  EXPECT_EQ(to_string(inputs[1].shape), "1x7x1x1") << "too large for a label";
  EXPECT_EQ(to_string(inputs[2].shape), "1x1x1x1");
}

TEST(NetInputs, OneShapeOfAnInputLayerIsForAll) {
  const auto inputs = inputs_of(
      "layer { name: 'in' type: 'Input' top: 'a' top: 'b' input_param {"
      " shape { dim: 9 dim: 3 dim: 4 dim: 5 } } }");
  EXPECT_EQ(to_string(inputs[1].shape), "1x3x4x5");
}

TEST(NetInputs, DummyDataHasItsShapesAndFillers) {
  const auto inputs = inputs_of(
      "layer { name: 'x' type: 'DummyData' top: 'a' top: 'b' dummy_data_param {"
      " num: 10 num: 10 channels: 3 channels: 1 height: 4 height: 1 width: 5 width: 1"
      " data_filler { type: 'gaussian' std: 2 } data_filler { value: 3 } } }" +
      data_layer);
  EXPECT_THAT(roles(inputs), ElementsAre(Role::more, Role::more, Role::data, Role::label));
  EXPECT_EQ(to_string(inputs[0].shape), "1x3x4x5");
  EXPECT_EQ(inputs[0].filler->std, 2);
  EXPECT_EQ(to_string(inputs[1].shape), "1x1x1x1");
  EXPECT_EQ(inputs[1].filler->value, 3);
}

TEST(NetInputs, DummyDataWithoutAShapeOrWithTooFewFillersIsRefused) {
  EXPECT_EQ(failure_of_inputs("layer { name: 'x' type: 'DummyData' top: 'a' }"),
            "layer 'x' (DummyData): its output 'a' has no shape: write dummy_data_param { shape { "
            "dim: 10 dim: 3 } }, one for all outputs or one for each (net.prototxt:1)");
  EXPECT_THAT(
      failure_of_inputs("layer { name: 'x' type: 'DummyData' top: 'a' top: 'b' top: 'c' "
                        "dummy_data_param { shape { dim: 3 } data_filler {} data_filler {} } }"),
      HasSubstr("has 2 data_filler for 3 tops"));
  EXPECT_THAT(
      failure_of_inputs("layer { name: 'x' type: 'DummyData' top: 'a' dummy_data_param { shape { "
                        "dim: 3 } data_filler { type: 'xavier' } } }"),
      HasSubstr("data_filler is 'xavier', but data have no fan"));
}

TEST(NetInputs, OfANetAreTensorsOfItsBatch) {
  const Net net = build(data_layer +
                        "layer { name: 'x' type: 'DummyData' top: 'x' dummy_data_param {"
                        " shape { dim: 10 dim: 3 dim: 8 dim: 8 } } }" +
                        layer("sum", "test.Add", "data", "sum", "bottom: 'x'") +
                        inner_product_layer("ip", "sum", "ip") + loss_layer);
  ASSERT_EQ(net.more_inputs.size(), 1u);
  const Tensor& x = net.tensors[static_cast<size_t>(net.more_inputs[0])];
  EXPECT_EQ(x.name, "x");
  EXPECT_EQ(to_string(x.shape), "2x3x8x8") << "rows of the batch, whatever the file says";
  EXPECT_EQ(to_string(net.shapes(1)[static_cast<size_t>(net.more_inputs[0])]), "1x3x8x8");
}

TEST(NetInputs, ANetOfDummyDataOnlyHasSamplesThatNoLayerReads) {
  const Net net = build(
      "layer { name: 'x' type: 'DummyData' top: 'data' top: 'label' dummy_data_param {"
      " shape { dim: 10 dim: 3 } shape { dim: 10 } } }" +
      inner_product_layer("ip", "data", "ip") + loss_layer);
  EXPECT_EQ(net.more_inputs.size(), 2u);
  EXPECT_EQ(to_string(net.tensors[static_cast<size_t>(net.data)].shape), "2x1x1x1");
  EXPECT_TRUE(net.tensors[static_cast<size_t>(net.data)].consumers.empty());
}

}  // namespace
}  // namespace tandem
