// Nets of classes that learn several labels or numbers: the loss is exchanged, what is of classes
// is left out.
#include "core/model/adapted/target_losses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/model/adapted/classes.h"
#include "tests/model/net_test.h"

namespace tandem {
namespace {

using namespace test;
using testing::ElementsAre;
using testing::HasSubstr;

NetDefinition net_of(const std::string& before_loss, const std::string& scores) {
  return parse_definition(
      "name: 'n'\n"
      "layer { name: 'data' type: 'Data' top: 'data' top: 'label' }\n"
      "layer { name: 'fc' type: 'InnerProduct' bottom: 'data' top: 'fc' inner_product_param { "
      "num_output: 4 } }\n" +
      before_loss + "layer { name: 'accuracy' type: 'Accuracy' bottom: '" + scores +
      "' bottom: 'label' top: 'accuracy' include { phase: TEST } }\n"
      "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: '" +
      scores + "' bottom: 'label' top: 'loss' loss_param { ignore_label: 3 } }\n");
}

const LayerDefinition& loss_of(const NetDefinition& net) {
  const auto found =
      std::find_if(net.layers.begin(), net.layers.end(),
                   [](const LayerDefinition& layer) { return layer.name == "loss"; });
  return found == net.layers.end() ? net.layers.front() : *found;
}

TEST(TargetLosses, ReadATargetOfEachLabelInBothPhases) {
  const TargetNet made =
      with_target_losses(net_of("", "fc"), fake_registry(), TANDEM_TASK_LABELS, 7, "");
  EXPECT_EQ(loss_of(made.net).type, "SigmoidCrossEntropyLoss");
  EXPECT_THAT(loss_of(made.net).bottoms, ElementsAre("fc", "class_targets"));
  EXPECT_EQ(loss_of(made.net).body.find("loss_param"), nullptr) << "it was of the other loss";
  EXPECT_EQ(class_count(made.net), 7);
  EXPECT_TRUE(tests_targets(made.net));
  EXPECT_FALSE(tests_targets(net_of("", "fc")));
  EXPECT_EQ(made.net.net_inputs(TANDEM_TRAIN).back().shape.c, 7);
  for (const LayerDefinition& layer : made.net.layers) EXPECT_NE(layer.type, "Accuracy");
  EXPECT_THAT(made.notes,
              ElementsAre(HasSubstr("SigmoidCrossEntropyLoss instead of SoftmaxWithLoss"),
                          HasSubstr("'accuracy'")));
}

TEST(TargetLosses, OfNumbersAreHubersUnlessAnotherIsGiven) {
  const NetDefinition net = net_of("", "fc");
  EXPECT_EQ(loss_of(with_target_losses(net, fake_registry(), TANDEM_TASK_VALUES, 1, "").net).type,
            "HuberLoss");
  EXPECT_EQ(
      loss_of(with_target_losses(net, fake_registry(), TANDEM_TASK_VALUES, 1, "EuclideanLoss").net)
          .type,
      "EuclideanLoss");
}

// A ReLU would leave no negative score, of which the sigmoid is below a half.
TEST(TargetLosses, DoNotReadScoresThroughAReluOrASoftmax) {
  const std::string relu = "layer { name: 'relu' type: 'ReLU' bottom: 'fc' top: 'fc' }\n";
  const TargetNet made =
      with_target_losses(net_of(relu, "fc"), fake_registry(), TANDEM_TASK_LABELS, 7, "");
  for (const LayerDefinition& layer : made.net.layers) EXPECT_NE(layer.type, "ReLU");
  const std::string softmax = "layer { name: 'prob' type: 'Softmax' bottom: 'fc' top: 'prob' }\n";
  const TargetNet other =
      with_target_losses(net_of(softmax, "prob"), fake_registry(), TANDEM_TASK_LABELS, 7, "");
  EXPECT_EQ(loss_of(other.net).bottoms[0], "fc");
}

TEST(TargetLosses, MadeAgainForOtherLabelsHaveOneInput) {
  const TargetNet made =
      with_target_losses(net_of("", "fc"), fake_registry(), TANDEM_TASK_LABELS, 7, "");
  const TargetNet again = with_target_losses(made.net, fake_registry(), TANDEM_TASK_LABELS, 5, "");
  EXPECT_EQ(again.net.net_inputs(TANDEM_TEST).size(), made.net.net_inputs(TANDEM_TEST).size());
  EXPECT_EQ(again.net.net_inputs(TANDEM_TEST).back().shape.c, 5);
  EXPECT_TRUE(again.notes.empty());
}

TEST(TargetLosses, NeedANetWithALossOfTheLabels) {
  const NetDefinition net = parse_definition(
      "name: 'n'\n"
      "layer { name: 'data' type: 'Data' top: 'data' top: 'label' }\n"
      "layer { name: 'fc' type: 'InnerProduct' bottom: 'data' top: 'fc' inner_product_param { "
      "num_output: 4 } }\n");
  EXPECT_THAT(message_of([&] {
                (void)with_target_losses(net, fake_registry(), TANDEM_TASK_LABELS, 2, "");
              }),
              HasSubstr("has no loss of the labels"));
}

}  // namespace
}  // namespace tandem
