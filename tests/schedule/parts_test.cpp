// Where the FC part begins: by name, or where the predicted step is the shortest.
#include "core/schedule/strategies/data_parallel/parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/schedule/plan_checks.h"

namespace tandem::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Parts choose(const Net& net, const std::string& split, const CostTable& costs = {}, int devices = 2,
             double bandwidth = 0) {
  StrategyInputs inputs = inputs_of(net, devices);
  inputs.costs = &costs;
  inputs.link.bandwidth = bandwidth;
  inputs.options.split = split;
  return choose_parts(inputs);
}

std::string refusal(const Net& net, const std::string& split) {
  return error_of([&] { (void)choose(net, split); });
}

// Everything free but these backward passes.
CostTable costs_with(const Net& net, const std::vector<std::pair<std::string, double>>& seconds) {
  CostTable costs;
  for (const Layer& layer : net.layers) {
    for (const char* pass : {" forward", " backward_data", " backward_weights"}) {
      costs.set(layer.name + pass, {0, 0, 0});
    }
  }
  for (const char* key : {"add", "update", "check"}) costs.set(key, {0, 0, 0});
  for (const auto& [key, value] : seconds) costs.set(key, {value, 0, 0});
  return costs;
}

TEST(Split, AtALayerDividesTheWeightsThere) {
  const Net net = small_net(8);
  const Parts parts = choose(net, "pool2");
  EXPECT_EQ(net.layers[size_t(parts.split_layer)].name, "pool2");
  EXPECT_THAT(parts.conv_weights, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(parts.fc_weights, ElementsAre(4, 5, 6, 7));
}

TEST(Split, AtAnUnknownLayerSuggestsANearName) {
  EXPECT_THAT(refusal(small_net(8), "conv3"),
              HasSubstr("--split conv3: net 'small' has no such layer (did you mean 'conv"));
}

TEST(Split, ThatLeavesAPartWithoutWeightsSaysWhereItMayBe) {
  const Net net = small_net(8);
  EXPECT_THAT(refusal(net, "loss"),
              HasSubstr("--split loss: the FC part would have no weights to train; the FC part may "
                        "begin behind 'conv1' and up to 'fc2'"));
  EXPECT_THAT(refusal(net, "conv1"), HasSubstr("the conv part would have no weights to train"));
}

TEST(Split, OfANetWithOneLayerOfWeightsIsLeftToAuto) {
  const Net net = FakeNet("net", 8, {1, 1, 4, 4}).inner_product("fc", 16).loss().finish();
  EXPECT_THAT(refusal(net, "fc"), HasSubstr("the only layer with any is 'fc'"));
  const Parts parts = choose(net, "auto");
  EXPECT_THAT(parts.fc_weights, ElementsAre(0, 1));
  EXPECT_TRUE(parts.conv_weights.empty());
}

TEST(Split, OfANetWithNothingToTrainIsAnError) {
  const Net net =
      FakeNet("net", 8, {1, 1, 4, 4}).inner_product("fc", 16).loss().freeze("fc").finish();
  EXPECT_THAT(refusal(net, "auto"), HasSubstr("net 'net' has no weights to train"));
}

TEST(Split, CountsWeightsUsedInBothPartsToTheConvPart) {
  const Net net = FakeNet("net", 4, {1, 1, 4, 4})
                      .inner_product("fc1", 16)
                      .inner_product("fc2", 16)
                      .inner_product("fc3", 16)
                      .inner_product_sharing("fc4", "fc2")
                      .loss()
                      .finish();
  const Parts parts = parts_at(net, net.find_layer("fc3"));
  EXPECT_THAT(parts.conv_weights, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(parts.fc_weights, ElementsAre(4, 5));
}

// Two passes of 5 ms in the conv part: only the split behind conv2 hides the transfer of fc1.
TEST(Split, ByItselfHidesTheLargestTransferItCan) {
  const Net net = small_net(8);
  const CostTable costs =
      costs_with(net, {{"conv2 backward_data", 5e-3}, {"conv1 backward_weights", 5e-3}});
  EXPECT_EQ(net.layers[size_t(choose(net, "auto", costs, 2, 1e7).split_layer)].name, "fc1");
}

// When even fc2 takes longer to send than all that is left to compute, sending it first is best.
TEST(Split, ByItselfFollowsTheCosts) {
  const Net net = small_net(8);
  const CostTable costs =
      costs_with(net, {{"fc1 backward_weights", 1.0}, {"fc1 backward_data", 1.0}});
  const Parts parts = choose(net, "auto", costs, 2, 1e7);
  EXPECT_EQ(net.layers[size_t(parts.split_layer)].name, "fc2");
  EXPECT_THAT(parts.notes.front(), HasSubstr("split at 'fc2', the smallest predicted step"));
}

TEST(Split, TellsWhatTheAlexNetTestSaysWhateverIsChosen) {
  const Net net = small_net(8);
  EXPECT_THAT(choose(net, "fc2").notes,
              ElementsAre("split at 'fc2', as told", HasSubstr("AlexNet-like")));
}

TEST(Split, ByItselfIsPredictedNoSlowerThanAnyOther) {
  const Net net = alexnet(64);
  const CostTable costs;
  StrategyInputs inputs = inputs_of(net, 2);
  inputs.costs = &costs;
  const double chosen = predict_two_phase(inputs, choose_parts(inputs));
  for (const Layer& layer : net.layers) {
    const Parts other = parts_at(net, net.find_layer(layer.name));
    if (other.fc_weights.empty() || other.conv_weights.empty()) continue;
    EXPECT_LE(chosen, predict_two_phase(inputs, other)) << layer.name;
  }
}

}  // namespace
}  // namespace tandem::test
