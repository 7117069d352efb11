// Where the FC part begins: by name, or where the predicted step is the shortest.
#include "core/schedule/strategies/data_parallel/parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/schedule/strategies/common/fastest_variant.h"
#include "core/schedule/strategies/data_parallel/two_phase.h"
#include "tests/schedule/plan_checks.h"

namespace tandem::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ChosenParts choose(const Net& net, const std::string& split, const CostTable& costs = {},
                   int devices = 2, double bandwidth = 0) {
  StrategyInputs inputs = inputs_of(net, devices);
  inputs.costs = &costs;
  inputs.link.bandwidth = bandwidth;
  TwoPhaseOptions options;
  options.split = split;
  return choose_parts(inputs, options);
}

std::string refusal(const Net& net, const std::string& split) {
  return message_of([&] { (void)choose(net, split); });
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
  const Parts parts = choose(net, "pool2").parts;
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
                        "begin after 'conv1' and up to 'fc2'"));
  EXPECT_THAT(refusal(net, "conv1"), HasSubstr("the conv part would have no weights to train"));
}

TEST(Split, OfANetWithOneLayerOfWeightsIsLeftToAuto) {
  const Net net = FakeNet("net", 8, {1, 1, 4, 4}).inner_product("fc", 16).loss().finish();
  EXPECT_THAT(refusal(net, "fc"), HasSubstr("the only layer with any is 'fc'"));
  const auto [parts, split, notes] = choose(net, "auto");
  EXPECT_EQ(split, "auto");
  EXPECT_THAT(parts.fc_weights, ElementsAre(0, 1));
  EXPECT_TRUE(parts.conv_weights.empty());
}

TEST(Split, OfANetWithNothingToTrainIsAnError) {
  const Net net =
      FakeNet("net", 8, {1, 1, 4, 4}).inner_product("fc", 16).loss().freeze("fc").finish();
  EXPECT_THAT(message_of([&] { (void)build_plan("two_phase", inputs_of(net, 2)); }),
              HasSubstr("net 'net' has no weights to train"));
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

// Two passes of 5 ms in the conv part: only the split after conv2 hides the transfer of fc1.
TEST(Split, ByItselfHidesTheLargestTransferItCan) {
  const Net net = small_net(8);
  const CostTable costs =
      costs_with(net, {{"conv2 backward_data", 5e-3}, {"conv1 backward_weights", 5e-3}});
  EXPECT_EQ(net.layers[size_t(choose(net, "auto", costs, 2, 1e7).parts.split_layer)].name, "fc1");
}

// While fc1's gradients are computed, fc2's can travel; no other split has anything to hide behind.
TEST(Split, ByItselfFollowsTheCosts) {
  const Net net = small_net(8);
  const CostTable costs = costs_with(net, {{"fc1 backward_weights", 1.0}});
  const ChosenParts chosen = choose(net, "auto", costs, 2, 1e7);
  EXPECT_EQ(chosen.split, "fc2");
  EXPECT_EQ(net.layers[size_t(chosen.parts.split_layer)].name, "fc2");
  EXPECT_THAT(chosen.notes.front(), HasSubstr("split at 'fc2', the smallest predicted step"));
}

TEST(Split, OfAnAlexNetLikeNetIsAtPWhereAsked) {
  const Net net = alexnet(8);
  CostTable costs = costs_with(net, {{"conv2 backward_data", 5e-3}, {"fc6 backward_data", 1e-3}});
  const ChosenParts chosen = choose(net, "alexnet", costs);
  EXPECT_EQ(chosen.split, "fc6");
  EXPECT_THAT(chosen.notes.front(), HasSubstr("split at 'fc6', by the AlexNet-like test"));
  costs.set("fc7 backward_data", {1, 0, 0});  // p is fc7 now, and fc6 is large
  EXPECT_THAT(choose(net, "alexnet", costs).notes.front(),
              HasSubstr("used because the AlexNet-like test gives no split"));
}

TEST(Split, TellsWhatTheAlexNetTestSaysWhateverIsChosen) {
  const Net net = small_net(8);
  EXPECT_THAT(choose(net, "fc2").notes,
              ElementsAre("split at 'fc2', as given", HasSubstr("AlexNet-like")));
}

// By the same simulation that forecasts strategies, with and without hidden broadcast.
TEST(Split, ByItselfIsSimulatedNoSlowerThanAnyOther) {
  const Net net = alexnet(64);
  const CostTable costs;
  for (const int devices : {1, 2, 4}) {
    for (const bool hidden : {false, true}) {
      StrategyInputs inputs = inputs_of(net, devices);
      inputs.costs = &costs;
      inputs.options["hidden_broadcast"] = hidden;
      const auto seconds = [&](const std::string& split) {
        inputs.options["split"] = split;
        return simulated_step_seconds(inputs, build_plan("two_phase", inputs));
      };
      const double chosen = seconds("auto");
      const std::vector<int> candidates = split_candidates(net);
      for (size_t i = 1; i < candidates.size(); ++i) {
        const std::string& split = net.layers[size_t(candidates[i])].name;
        EXPECT_LE(chosen, seconds(split)) << split;
      }
    }
  }
}

TEST(Split, IsAnOptionOfThePlanWhereThereWasOneToChoose) {
  const Net net = small_net(8);
  const Plan plan = build_plan("two_phase", inputs_of(net, 2));
  EXPECT_EQ(plan.options.at("split"), OptionValue(plan.split_layer));
  const Net one = FakeNet("net", 8, {1, 1, 4, 4}).inner_product("fc", 16).loss().finish();
  StrategyInputs inputs = inputs_of(one, 2);
  inputs.options = build_plan("two_phase", inputs).options;
  EXPECT_FALSE(inputs.options.contains("split"));
  EXPECT_EQ(message_of([&] { (void)build_plan("two_phase", inputs); }), "");
}

}  // namespace
}  // namespace tandem::test
