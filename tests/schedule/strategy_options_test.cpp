// The options of all strategies: who takes them, what they are read from and into, what of them a
// resumed run keeps, and where they are written down.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

#include "core/base/error.h"
#include "core/schedule/strategies/data_parallel/layerwise.h"
#include "core/schedule/strategies/data_parallel/two_phase.h"
#include "tests/schedule/plan_checks.h"
#include "tests/support/folders.h"

namespace tandem::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const Strategies& all() {
  return built_in_strategies();
}

const StrategyOption& option(const std::string& name) {
  for (const KnownOption& known : all().options()) {
    if (known.option.name == name) return known.option;
  }
  throw error("no option {}", name);
}

// As a command line has it, and not the default.
std::string text_for(const StrategyOption& option) {
  if (option.is_flag) return "";
  if (!option.words.empty()) return option.words.back();
  if (option.is_size) return "2MiB";
  return std::holds_alternative<double>(option.standard) ? "0.3" : "2";
}

TEST(StrategyOptions, AreRefusedByEveryStrategyThatDoesNotTakeThem) {
  const Net net = small_net(8);
  for (const KnownOption& known : all().options()) {
    const StrategyOption& one = known.option;
    StrategyInputs inputs = inputs_of(net, 2);
    inputs.options[one.key] = one.parse(text_for(one));
    for (const Strategy& strategy : all()) {
      if (std::find(known.strategies.begin(), known.strategies.end(), strategy.name) !=
          known.strategies.end()) {
        EXPECT_EQ(message_of([&] { all().require_options_of(strategy.name, inputs.options); }), "");
        continue;
      }
      EXPECT_THAT(message_of([&] { (void)build_plan(strategy.name, inputs); }),
                  AllOf(HasSubstr(one.name + " is an option of strateg"),
                        HasSubstr("'" + known.strategies.front() + "'"),
                        HasSubstr("strategy '" + strategy.name + "' has none of that name")));
    }
  }
}

TEST(StrategyOptions, AreWrittenAsTheyAreRead) {
  for (const KnownOption& known : all().options()) {
    const StrategyOption& one = known.option;
    const std::string text = text_for(one);
    const OptionValue value = one.parse(text);
    EXPECT_EQ(one.to_text(value), one.is_flag ? one.name : one.name + " " + text);
    EXPECT_EQ(message_of([&] { one.validate(value); }), "") << one.name;
  }
}

TEST(StrategyOptions, AreReadIntoTheStrategysStructAndWrittenFromIt) {
  TwoPhaseOptions options = two_phase_options().read({});
  EXPECT_EQ(options.split, "auto");
  EXPECT_TRUE(options.hidden_broadcast);
  EXPECT_TRUE(two_phase_options().write(options).empty());
  const StrategyOptions values{
      {"hidden_broadcast", false}, {"split", "fc1"}, {"time_threshold", 0.25}};
  options = two_phase_options().read(values);
  EXPECT_EQ(options.split, "fc1");
  EXPECT_FALSE(options.hidden_broadcast);
  EXPECT_EQ(options.time_threshold, 0.25);
  EXPECT_EQ(two_phase_options().write(options), values);
}

TEST(StrategyOptions, OfAnotherTypeAreRefused) {
  EXPECT_THAT(message_of([] {
                (void)two_phase_options().read({{"split", 3}});
              }),
              HasSubstr("'split': its value is not a text"));
  EXPECT_THAT(message_of([] {
                (void)layerwise_options().read({{"bucket", "4MiB"}});
              }),
              HasSubstr("'bucket': its value is not a whole number"));
  EXPECT_THAT(message_of([] {
                (void)two_phase_options().read({{"hidden_broadcast", 1}});
              }),
              HasSubstr("'hidden_broadcast': its value is not true or false"));
}

TEST(StrategyOptions, ThatNoStrategyHasAreRefusedWithNearNames) {
  const Net net = small_net(8);
  StrategyInputs inputs = inputs_of(net, 2);
  inputs.options["buckets"] = 4096;
  EXPECT_EQ(message_of([&] { (void)build_plan("layerwise", inputs); }),
            "no strategy has an option 'buckets' (did you mean 'bucket'?)");
  inputs.options = {{"reduce", "trees"}};
  EXPECT_EQ(message_of([&] { (void)build_plan("layerwise", inputs); }),
            "--reduce trees: unknown value; there are: serial, tree, ring (did you mean 'tree'?)");
}

TEST(StrategyOptions, NameEveryStrategyThatTakesThem) {
  const StrategyOptions given{{"split", "fc1"}};
  EXPECT_THAT(message_of([&] { all().require_options_of("layerwise", given); }),
              HasSubstr("--split is an option of strategies 'sequential' and 'two_phase'; strategy "
                        "'layerwise' has none"));
  // Of two flags the one that was given.
  EXPECT_THAT(message_of([&] {
                all().require_options_of("layerwise", {{"hidden_broadcast", false}});
              }),
              HasSubstr("--plain-broadcast is an option of strategy 'two_phase'"));
  EXPECT_THAT(message_of([&] {
                all().require_options_of("layerwise", {{"hidden_broadcast", true}});
              }),
              HasSubstr("--hidden-broadcast is an option of strategy 'two_phase'"));
}

TEST(StrategyOptions, OfAllAndOfAutoAreThoseOfTheStrategiesThatHaveThem) {
  const StrategyOptions given{{"reduce", "tree"}, {"quota", 2}};
  EXPECT_EQ(message_of([&] { all().require_options_of("auto", given); }), "");
  EXPECT_EQ(all().options_of("layerwise", given), (StrategyOptions{{"reduce", "tree"}}));
  EXPECT_EQ(all().options_of("fc_parallel", given), (StrategyOptions{{"quota", 2}}));
}

StrategyOptions overlaid(StrategyOptions options, const StrategyOptions& given,
                         const std::set<std::string>& kept = {}) {
  all().overlay(given, kept, options);
  return options;
}

TEST(StrategyOptions, ReplaceOthersOnlyWhereTheyAreGiven) {
  EXPECT_EQ(overlaid({{"reduce", "tree"}, {"bucket", 7}}, {{"bucket", 9}}),
            (StrategyOptions{{"reduce", "tree"}, {"bucket", 9}}));
}

TEST(StrategyOptions, ThatAreGivenReplaceOthersByTheirDefaultValue) {
  const StrategyOptions there{{"hidden_broadcast", false}, {"split", "fc1"}};
  EXPECT_TRUE(overlaid(there, {{"hidden_broadcast", true}, {"split", "auto"}}).empty());
}

TEST(StrategyOptions, ThatChangeOpenWhatWasChosenToGoWithThem) {
  const StrategyOptions quota{{"quota", 4}}, both{{"quota", 4}, {"eager", true}};
  EXPECT_EQ(overlaid(both, {{"eager", true}}), both);  // nothing has changed
  EXPECT_EQ(overlaid(quota, {{"eager", true}}, {"quota"}), both);
  EXPECT_EQ(overlaid(quota, {{"eager", true}}), (StrategyOptions{{"eager", true}}));
  EXPECT_EQ(overlaid({{"conv_devices", 2}, {"fc_devices", 2}}, {{"conv_devices", 3}}),
            (StrategyOptions{{"conv_devices", 3}}));
  EXPECT_EQ(overlaid({{"reduce", "ring"}, {"bucket", 7}}, {{"reduce", "tree"}}),
            (StrategyOptions{{"reduce", "tree"}}));
}

TEST(StrategyOptions, SayWhatWouldBeRightForAWrongValue) {
  const auto refusal = [&](const char* name, const char* value) {
    return message_of([&] { (void)option(name).parse(value); });
  };
  EXPECT_EQ(refusal("--reduce", "trees"),
            "--reduce trees: unknown value; there are: serial, tree, ring (did you mean 'tree'?)");
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
  EXPECT_THAT(text.str(), HasSubstr(all().option_table()));
}

}  // namespace
}  // namespace tandem::test
