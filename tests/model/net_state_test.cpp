// Include and exclude rules: phase, level, stage; the layers of a net in each state.
#include "core/model/file/net_state.h"
#include "core/model/file/net_phases.h"
#include "core/model/passes/build_net.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/model/net_test.h"

namespace tandem {
namespace {

using namespace test;
using testing::ElementsAre;
using testing::HasSubstr;

// Whether a layer with these rules is in the training net of that state.
bool is_in(const std::string& rules, const NetState& state) {
  const NetDefinition net = parse_definition("layer { name: 'a' type: 'ReLU' " + rules +
                                             " } layer { name: 'b' type: 'ReLU' }");
  const NetDefinition result = in_states(net, state, {});
  return result.layers.front().name == "a" && result.layers.front().in_phase(TANDEM_TRAIN);
}

TEST(NetState, AStageMustBeSetAndANotStageMustNot) {
  EXPECT_FALSE(is_in("include { stage: 'x' }", {}));
  EXPECT_TRUE(is_in("include { stage: 'x' }", {0, {"x", "y"}}));
  EXPECT_FALSE(is_in("include { stage: 'x' stage: 'z' }", {0, {"x", "y"}}));
  EXPECT_FALSE(is_in("include { not_stage: 'x' }", {0, {"x"}}));
  EXPECT_TRUE(is_in("include { not_stage: 'x' }", {}));
  EXPECT_FALSE(is_in("exclude { stage: 'x' }", {0, {"x"}}));
}

TEST(NetState, LevelsAreInclusive) {
  EXPECT_FALSE(is_in("include { min_level: 2 }", {1, {}}));
  EXPECT_TRUE(is_in("include { min_level: 2 }", {2, {}}));
  EXPECT_TRUE(is_in("include { max_level: 2 }", {2, {}}));
  EXPECT_FALSE(is_in("include { max_level: 2 }", {3, {}}));
  EXPECT_TRUE(is_in("include { min_level: -1 max_level: 0 }", {}));
}

TEST(NetState, AnyOfSeveralRulesDecidesAndAllConditionsOfOneMustHold) {
  EXPECT_TRUE(is_in("include { phase: TEST } include { stage: 'x' }", {0, {"x"}}));
  EXPECT_FALSE(is_in("include { phase: TEST stage: 'x' }", {0, {"x"}}));
}

const char* const staged =
    "name: 'n'\n"
    "layer { name: 'data' type: 'Data' top: 'data' include { phase: TRAIN } }\n"
    "layer { name: 'data' type: 'Data' top: 'data' include { phase: TEST stage: 'far' } }\n"
    "layer { name: 'data' type: 'Data' top: 'data' include { phase: TEST stage: 'near' } }\n"
    "layer { name: 'both' type: 'ReLU' bottom: 'data' top: 'a' exclude { stage: 'none' } }\n";

TEST(NetState, EachPhaseHasItsOwnState) {
  const NetDefinition net = in_states(parse_definition(staged), {}, {0, {"near"}});
  ASSERT_EQ(net.layers.size(), 3u);
  EXPECT_EQ(net.layers[1].location.line, 4) << "the layer of the other stage is left out";
  EXPECT_TRUE(net.layers[1].in_phase(TANDEM_TEST));
  EXPECT_FALSE(net.layers[1].in_phase(TANDEM_TRAIN));
  EXPECT_TRUE(net.layers[2].include.empty() && net.layers[2].exclude.empty());
}

TEST(NetState, IsTheSameAfterWritingAndReadingTheNet) {
  const std::string text = write_net(in_states(parse_definition(staged), {}, {0, {"near"}}));
  const NetDefinition net = in_states(parse_definition(text), {}, {});
  EXPECT_EQ(net.layers.size(), 3u);
  EXPECT_EQ(write_net(net), text);
}

TEST(NetState, TheNetsOwnStateIsMergedIntoTheGivenOne) {
  const NetDefinition net = parse_definition(
      "state { level: 3 stage: 'x' } layer { name: 'a' type: 'ReLU' include { "
      "min_level: 3 stage: 'x' stage: 'y' } } layer { name: 'b' type: 'ReLU' }");
  EXPECT_EQ(in_states(net, {0, {"y"}}, {}).layers.front().name, "a");
  EXPECT_EQ(in_states(net, {2, {"y"}}, {}).layers.front().name, "b");
}

TEST(NetState, UnknownFieldsOfARuleSuggestTheNearName) {
  EXPECT_THAT(message_of([] {
                (void)parse_definition("layer { name: 'a' type: 'ReLU' include { stag: 'x' } }");
              }),
              HasSubstr("unknown field of include 'stag' (did you mean 'stage'?); known: phase, "
                        "min_level, max_level, stage, not_stage (net.prototxt:1:42)"));
}

TEST(JoinedNets, NetsTrainAndTestAndShareWeightsOfOneName) {
  const std::string last = inner_product_layer("ip", "data", "ip") + loss_layer;
  const NetDefinition net =
      joined(parse_definition(data_layer + layer("drop", "Dropout", "data", "data") + last),
             parse_definition(data_layer + last));
  const Net train = build_net(net, fake_registry(), small_options());
  const Net test = build_net(net, fake_registry(), small_options(TANDEM_TEST));
  EXPECT_THAT(layer_names(train), ElementsAre("drop", "ip", "loss"));
  EXPECT_THAT(layer_names(test), ElementsAre("ip", "loss"));
  EXPECT_THAT(weight_names(test), ElementsAre("ip.weight", "ip.bias"));
  EXPECT_EQ(weight_names(train), weight_names(test));
}

}  // namespace
}  // namespace tandem
