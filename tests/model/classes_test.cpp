// Nets whose losses read a target for each class in place of a label.
#include "core/model/adapted/classes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/model/adapted/two_scores.h"
#include "tests/model/net_test.h"

namespace tandem {
namespace {

using namespace test;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* classifier =
    "name: 'n'\n"
    "layer { name: 'data' type: 'Data' top: 'data' top: 'label' }\n"
    "layer { name: 'fc' type: 'InnerProduct' bottom: 'data' top: 'fc' inner_product_param { "
    "num_output: 4 } }\n"
    "layer { name: 'accuracy' type: 'Accuracy' bottom: 'fc' bottom: 'label' top: 'accuracy' }\n"
    "layer { name: 'loss' type: '$' bottom: 'fc' bottom: 'label' top: 'loss' }\n";

NetDefinition net_of(const std::string& loss) {
  std::string text = classifier;
  return parse_definition(text.replace(text.find('$'), 1, loss));
}

std::vector<std::string> second_inputs(const NetDefinition& net, int32_t phase) {
  std::vector<std::string> names;
  for (const LayerDefinition& layer : net.layers) {
    if (layer.in_phase(phase) && layer.bottoms.size() > 1) names.push_back(layer.bottoms[1]);
  }
  return names;
}

TEST(ClassTargets, AreReadByTheLossInTrainingOnly) {
  const NetDefinition net = with_class_targets(net_of("SoftmaxWithLoss"), fake_registry(), 4);
  EXPECT_THAT(second_inputs(net, TANDEM_TRAIN), ElementsAre("label", "class_targets"));
  EXPECT_THAT(second_inputs(net, TANDEM_TEST), ElementsAre("label", "label"));
  EXPECT_TRUE(reads_class_targets(net));
  EXPECT_FALSE(reads_class_targets(net_of("SoftmaxWithLoss")));
  EXPECT_EQ(net.net_inputs(TANDEM_TRAIN).back().shape.c, 4);
  EXPECT_EQ(net.net_inputs(TANDEM_TEST).size(), 2U);
}

TEST(ClassCount, IsTheSumOfTheScoresThatAConcatJoins) {
  const NetDefinition net = parse_definition(
      "name: 'n'\n"
      "layer { name: 'data' type: 'Data' top: 'data' top: 'label' }\n"
      "layer { name: 'a' type: 'InnerProduct' bottom: 'data' top: 'a' inner_product_param { "
      "num_output: 3 } }\n"
      "layer { name: 'b' type: 'InnerProduct' bottom: 'data' top: 'b' inner_product_param { "
      "num_output: 2 } }\n"
      "layer { name: 'both' type: 'Concat' bottom: 'a' bottom: 'b' top: 'both' }\n"
      "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'both' bottom: 'label' top: 'loss' "
      "}\n");
  EXPECT_EQ(class_count(net), 5);
  EXPECT_EQ(with_class_count(net, 5).layers.size(), net.layers.size());
  EXPECT_THAT(message_of([&] { (void)with_class_count(net, 4); }),
              HasSubstr("its 5 scores are joined from several layers (Concat)"));
}

// Their weights are as many as the classes, so that those of a file would not fit.
TEST(ClassCount, LayersWithWeightsBetweenClassifierAndLossGetNewNamesAsWell) {
  const NetDefinition net = parse_definition(
      "name: 'n'\n"
      "layer { name: 'data' type: 'Data' top: 'data' top: 'label' }\n"
      "layer { name: 'early' type: 'Bias' bottom: 'data' top: 'early' }\n"
      "layer { name: 'last' type: 'InnerProduct' bottom: 'early' top: 'last' "
      "inner_product_param { num_output: 4 } }\n"
      "layer { name: 'scale' type: 'Scale' bottom: 'last' top: 'scale' }\n"
      "layer { name: 'drop' type: 'Dropout' bottom: 'scale' top: 'drop' }\n"
      "layer { name: 'bias' type: 'Bias' bottom: 'drop' top: 'bias' }\n"
      "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'bias' bottom: 'label' top: 'loss' "
      "}\n");
  std::vector<std::string> names;
  for (const LayerDefinition& layer : with_class_count(net, 2).layers) names.push_back(layer.name);
  EXPECT_THAT(names, ElementsAre("data", "early", "last_2", "scale_2", "drop", "bias_2", "loss"));
}

TEST(TwoScores, OfOneOutputAreItsHalves) {
  std::string text = classifier;
  text.replace(text.find('$'), 1, "SigmoidCrossEntropyLoss");
  EXPECT_FALSE(with_two_scores(parse_definition(text))) << "four outputs";
  text.replace(text.find("num_output: 4"), 13, "num_output: 1");
  const std::optional<NetDefinition> net = with_two_scores(parse_definition(text));
  ASSERT_TRUE(net);
  EXPECT_EQ(class_count(*net), 2);
  std::vector<std::string> layers;
  for (const LayerDefinition& layer : net->layers) layers.push_back(layer.type);
  EXPECT_THAT(layers, ElementsAre("Data", "InnerProduct", "Power", "Power", "Concat", "Accuracy",
                                  "SoftmaxWithLoss"));
  EXPECT_THAT(net->layers.back().bottoms, ElementsAre("fc_classes", "label"));
  EXPECT_FALSE(with_two_scores(*net));
  EXPECT_EQ(class_count(parse_definition(write_net(*net))), 2);
}

TEST(ClassTargets, AreInTheNetThatARunSaves) {
  const NetDefinition net = with_class_targets(net_of("SoftmaxWithLoss"), fake_registry(), 4);
  const NetDefinition read = parse_definition(write_net(net));
  EXPECT_TRUE(reads_class_targets(read));
  EXPECT_EQ(with_class_targets(read, fake_registry(), 4).layers.size(), net.layers.size())
      << "once is enough";
}

TEST(ClassTargets, NeedALossThatSupportsThem) {
  EXPECT_THAT(message_of([] { (void)with_class_targets(net_of("HingeLoss"), fake_registry(), 4); }),
              HasSubstr("layer 'loss' (HingeLoss): takes class numbers"));
  EXPECT_THAT(message_of([] { (void)with_class_targets(net_of("Accuracy"), fake_registry(), 4); }),
              HasSubstr("net 'n' has no loss of the labels"));
}

}  // namespace
}  // namespace tandem
