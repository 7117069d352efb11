// One table says which option belongs to which strategy; checks and documentation come from it.
#include "core/schedule/strategies/strategy_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "core/base/error.h"
#include "tests/schedule/plan_checks.h"
#include "tests/support/folders.h"

namespace tandem::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const StrategyOption& option(const std::string& name) {
  for (const StrategyOption& one : strategy_options()) {
    if (one.name == name) return one;
  }
  throw error("no option {}", name);
}

// A value that it does not have by default.
std::string value_of(const StrategyOption& option) {
  if (option.name == "--reduce") return "tree";
  if (option.name == "--fc-memory") return "extended";
  if (option.name == "--slices") return "none";
  if (option.name == "--bucket") return "2MiB";
  return option.name.ends_with("threshold") ? "0.3" : "2";
}

TEST(StrategyOptions, AreRefusedByEveryStrategyThatDoesNotTakeThem) {
  const Net net = small_net(8);
  for (const StrategyOption& one : strategy_options()) {
    if (one.name == "--hidden-broadcast") continue;  // what it is without being told
    StrategyInputs inputs = inputs_of(net, 2);
    one.set(inputs.options, value_of(one));
    ASSERT_TRUE(one.is_explicit(inputs.options)) << one.name;
    for (const Strategy& strategy : strategies()) {
      if (one.is_of(strategy.name)) continue;
      EXPECT_THAT(error_of([&] { (void)build_plan(strategy.name, inputs); }),
                  AllOf(HasSubstr(one.name + " is an option of strateg"),
                        HasSubstr("'" + one.strategies.front() + "'"),
                        HasSubstr("strategy '" + strategy.name + "' has none of that name")));
    }
  }
}

TEST(StrategyOptions, AreOfStrategiesThatThereAre) {
  for (const StrategyOption& one : strategy_options()) {
    ASSERT_FALSE(one.strategies.empty()) << one.name;
    for (const std::string& name : one.strategies) {
      EXPECT_TRUE(std::any_of(strategies().begin(), strategies().end(),
                              [&](const Strategy& known) { return known.name == name; }))
          << one.name << " of " << name;
    }
  }
}

TEST(StrategyOptions, NameEveryStrategyThatTakesThem) {
  StrategyOptions told;
  told.split = "fc1";
  EXPECT_THAT(error_of([&] { require_options_of("layerwise", told); }),
              HasSubstr("--split is an option of strategies 'sequential' and 'two_phase'; strategy "
                        "'layerwise' has none"));
  EXPECT_EQ(error_of([&] { require_options_of("sequential", told); }), "");
}

TEST(StrategyOptions, OfAllAndOfAutoAreThoseOfTheStrategiesThatHaveThem) {
  StrategyOptions told;
  told.reduce = "tree";
  told.roles.quota = 2;
  EXPECT_EQ(error_of([&] { require_options_of("auto", told); }), "");
  EXPECT_EQ(options_of("layerwise", told).reduce, "tree");
  EXPECT_EQ(options_of("layerwise", told).roles.quota, 0);
  EXPECT_EQ(options_of("fc_parallel", told).roles.quota, 2);
  EXPECT_EQ(options_of("fc_parallel", told).reduce, "");
}

TEST(StrategyOptions, ReplaceOthersOnlyWhereTheyAreTold) {
  StrategyOptions there, told;
  there.reduce = "tree";
  there.bucket = 7;
  told.bucket = 9;
  overlay(told, {"--bucket"}, {}, there);
  EXPECT_EQ(there.reduce, "tree");
  EXPECT_EQ(there.bucket, 9);
}

TEST(StrategyOptions, ThatAreNamedReplaceOthersByTheirDefaultValue) {
  StrategyOptions there;
  there.hidden_broadcast = false;
  there.split = "fc1";
  there.time_threshold = there.weight_threshold = 0.3;
  const StrategyOptions standard;
  overlay(standard, {"--hidden-broadcast", "--split", "--time-threshold", "--weight-threshold"}, {},
          there);
  EXPECT_TRUE(there.hidden_broadcast);
  EXPECT_EQ(there.split, "auto");
  EXPECT_EQ(there.time_threshold, 0.1);
  EXPECT_EQ(there.weight_threshold, 0.1);
}

TEST(StrategyOptions, ThatChangeOpenWhatWasChosenToGoWithThem) {
  StrategyOptions there, told;
  there.roles.quota = 4;
  there.roles.eager = told.roles.eager = true;
  overlay(told, {"--eager"}, {}, there);
  EXPECT_EQ(there.roles.quota, 4);  // nothing has changed
  there.roles.eager = false;
  StrategyOptions told_before = there;
  overlay(told, {"--eager"}, {"--quota"}, told_before);
  EXPECT_EQ(told_before.roles.quota, 4);
  overlay(told, {"--eager"}, {}, there);
  EXPECT_EQ(there.roles.quota, 0);
  EXPECT_TRUE(there.roles.eager);
  there.roles.conv_devices = 2;
  there.roles.fc_devices = 2;
  told.roles.conv_devices = 3;
  overlay(told, {"--conv-devices"}, {}, there);
  EXPECT_EQ(there.roles.conv_devices, 3);
  EXPECT_EQ(there.roles.fc_devices, 0);
}

TEST(StrategyOptions, AreToldByNameOrByAnotherValueThanTheDefault) {
  StrategyOptions options;
  EXPECT_THAT(explicit_names(options), testing::IsEmpty());
  options.hidden_broadcast = false;
  EXPECT_THAT(explicit_names(options, {"--split"}),
              testing::ElementsAre("--plain-broadcast", "--split"));
}

TEST(StrategyOptions, SayWhatWouldBeRightForAWrongValue) {
  StrategyOptions options;
  const auto refusal = [&](const char* name, const char* value) {
    return error_of([&] { option(name).set(options, value); });
  };
  EXPECT_EQ(refusal("--reduce", "trees"),
            "--reduce trees: it is none of serial, tree, ring (did you mean 'tree'?)");
  EXPECT_THAT(refusal("--quota", "0"),
              HasSubstr("--quota 0: it must be a whole number of at leas"));
  EXPECT_THAT(refusal("--quota", "4294967297"), HasSubstr("at most 1024"));
  EXPECT_THAT(refusal("--time-threshold", "1.5"), HasSubstr("a share from 0 to 1"));
  EXPECT_THAT(refusal("--bucket", "4parsecs"), HasSubstr("--bucket 4parsecs"));
}

TEST(StrategyOptions, AreTheOnesThatTheDocumentationLists) {
  std::ifstream file(test::source_folder() / "docs/reference/strategies.md");
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_THAT(text.str(), HasSubstr(strategy_option_table()));
}

}  // namespace
}  // namespace tandem::test
