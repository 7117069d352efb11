// The options of strategies, each with what it takes and with what it does not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/program.h"

namespace tandem {
namespace {

using test::Desk;
using test::Outcome;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class EachStrategyOption : public testing::Test {
 protected:
  // What `plan` prints for LeNet on four devices.
  std::string planned(const std::string& strategy_and_options) {
    const Outcome outcome = desk_.tandem(command(strategy_and_options));
    EXPECT_EQ(outcome.code, 0) << outcome.errors;
    EXPECT_THAT(outcome.output, HasSubstr("predicted step"));
    return outcome.output;
  }
  std::string refusal(const std::string& strategy_and_options) {
    return desk_.refusal(command(strategy_and_options));
  }

 private:
  static std::string command(const std::string& strategy_and_options) {
    return "plan --net lenet --devices sim:4 --batch 8 --strategy " + strategy_and_options;
  }
  Desk desk_;
};

TEST_F(EachStrategyOption, ReduceIsOneOfThreeWays) {
  EXPECT_THAT(planned("layerwise --reduce tree"), HasSubstr("reduction: tree"));
  EXPECT_THAT(planned("layerwise --reduce serial"), HasSubstr("reduction: serial"));
  EXPECT_THAT(refusal("layerwise --reduce star"),
              HasSubstr("--reduce star: unknown value; there are: serial, tree, ring"));
}

TEST_F(EachStrategyOption, BucketIsASize) {
  EXPECT_THAT(planned("layerwise --bucket 64KiB"), HasSubstr("closed at 64 KiB"));
  for (const char* wrong : {"many", "-1", "0", "4parsecs"}) {
    EXPECT_THAT(refusal(std::string("layerwise --bucket ") + wrong),
                AllOf(HasSubstr(std::string("--bucket ") + wrong), HasSubstr("4MiB")));
  }
}

TEST_F(EachStrategyOption, OneBroadcastIsChosen) {
  EXPECT_THAT(refusal("two_phase --plain-broadcast --hidden-broadcast"),
              HasSubstr("--plain-broadcast and --hidden-broadcast contradict each other"));
}

TEST_F(EachStrategyOption, QuotaIsAtMostTheDevices) {
  EXPECT_THAT(planned("fc_parallel --quota 3"), HasSubstr("3 of 4 gradient parts a round"));
  EXPECT_THAT(refusal("fc_parallel --quota 5"),
              AllOf(HasSubstr("--quota 5"), HasSubstr("at most 4")));
  EXPECT_THAT(refusal("fc_parallel --quota x"),
              AllOf(HasSubstr("--quota x"), HasSubstr("at least 1")));
}

TEST_F(EachStrategyOption, EagerNeedsMoreThanOneRound) {
  EXPECT_THAT(planned("fc_parallel --eager"),
              HasSubstr("2 of 4 gradient parts a round, sent after"));
  EXPECT_THAT(refusal("fc_parallel --eager --quota 4"),
              AllOf(HasSubstr("--eager with --quota 4 on 4 devices"), HasSubstr("at most 3")));
  EXPECT_THAT(refusal("asymmetric --eager"), HasSubstr("--eager is an option of strategy 'fc_par"));
}

TEST_F(EachStrategyOption, FcMemoryIsTheDevicesOrExtended) {
  EXPECT_THAT(planned("hybrid --fc-memory extended"), HasSubstr("extended memory of device 3"));
  EXPECT_THAT(planned("hybrid --fc-memory device"), Not(HasSubstr("extended memory")));
  EXPECT_THAT(refusal("hybrid --fc-memory huge"),
              AllOf(HasSubstr("--fc-memory huge"), HasSubstr("device, extended")));
  EXPECT_THAT(refusal("sequential --fc-memory extended"),
              HasSubstr("--fc-memory is an option of strategy 'hybrid'"));
}

TEST_F(EachStrategyOption, ConvAndFcDevicesAreAllTheDevices) {
  EXPECT_THAT(planned("hybrid --conv-devices 2 --fc-devices 2"),
              Not(HasSubstr("forward conv1 @2")));
  EXPECT_THAT(planned("hybrid --conv-devices 3"), HasSubstr("forward conv1 @2"));
  EXPECT_THAT(
      refusal("hybrid --conv-devices 2 --fc-devices 3"),
      AllOf(HasSubstr("--conv-devices 2 and --fc-devices 3"), HasSubstr("3 and 1, 2 and 2")));
  EXPECT_THAT(refusal("hybrid --conv-devices x"),
              AllOf(HasSubstr("--conv-devices x"), HasSubstr("at least 1")));
}

TEST_F(EachStrategyOption, GroupsDivideTheDevices) {
  EXPECT_THAT(planned("asymmetric --groups E=0,2/W=1,3"), HasSubstr("groups E=0,2/W=1,3"));
  EXPECT_THAT(refusal("asymmetric --groups E=0/W=1"),
              AllOf(HasSubstr("device 2 is in neither group"), HasSubstr("as E=0,2/W=1,3")));
  EXPECT_THAT(refusal("layerwise --groups E=0,2/W=1,3"),
              HasSubstr("--groups is an option of strategy 'asymmetric'"));
}

TEST_F(EachStrategyOption, SlicesAreAllLargeOrNone) {
  for (const std::string slices : {"all", "large", "none"}) {
    EXPECT_THAT(planned("asymmetric --slices " + slices), HasSubstr("slices: " + slices));
  }
  EXPECT_THAT(refusal("asymmetric --slices small"),
              HasSubstr("--slices small: unknown value; there are: all, large, none"));
  EXPECT_THAT(refusal("layerwise --slices all"),
              HasSubstr("--slices is an option of strategy 'asymmetric'"));
}

// A run of LeNet, and its record.
class StrategyRun : public testing::Test {
 protected:
  static std::string first(const std::string& strategy) {
    return "train --out run --batch 8 --net lenet --data synthetic --steps 2 --strategy " +
           strategy;
  }
  static std::string resumed(const std::string& options) {
    return "train --out run --resume --steps 3 " + options;
  }
  // Its output.
  std::string done(const std::string& arguments) {
    const Outcome outcome = desk_.tandem(arguments);
    EXPECT_EQ(outcome.code, 0) << arguments << "\n" << outcome.output << outcome.errors;
    return outcome.output;
  }
  std::string refusal(const std::string& arguments) { return desk_.refusal(arguments); }
  nlohmann::json record() { return nlohmann::json::parse(desk_.read("run/run.json")); }
  // Of the strategy: those that differ from their defaults.
  nlohmann::json options() { return record()["options"]["strategy_options"]; }
  // As if something else had been the fastest when it began.
  void change(const std::string& pointer, const nlohmann::json& value) {
    nlohmann::json tree = record();
    tree[nlohmann::json::json_pointer(pointer)] = value;
    desk_.write("run/run.json", tree.dump(2));
  }
  // To another one of those that there are; the new one.
  int change_quota() {
    const int quota = options()["quota"].get<int>() == 1 ? 2 : 1;
    change("/options/strategy_options/quota", quota);
    return quota;
  }

 private:
  Desk desk_;
};

// The choice decides the bits, so it is the run's, even where another one is the fastest by now.
TEST_F(StrategyRun, KeepsItsQuotaWhenItIsResumed) {
  EXPECT_THAT(done(first("fc_parallel --devices cpu:4")), HasSubstr("the fastest on sim: --quota"));
  const int quota = change_quota();
  EXPECT_THAT(done(resumed("")),
              AllOf(HasSubstr(std::to_string(quota) + " of 4 gradient parts a round"),
                    Not(HasSubstr("the fastest on sim"))));
  EXPECT_EQ(options()["quota"], quota);
}

TEST_F(StrategyRun, KeepsItsQuotaWhenTheSameOptionsAreGivenAgain) {
  const std::string begun = first("fc_parallel --devices cpu:4 --eager");
  (void)done(begun);
  const int quota = change_quota();
  EXPECT_THAT(done(test::replaced(begun, "--steps 2", "--steps 3") + " --resume"),
              Not(HasSubstr("the fastest on sim")));
  EXPECT_EQ(options()["quota"], quota);
}

TEST_F(StrategyRun, KeepsItsPairWhenAnotherOptionChanges) {
  (void)done(first("hybrid --devices cpu:4"));
  const int conv = options()["conv_devices"].get<int>() == 2 ? 3 : 2;
  change("/options/strategy_options/conv_devices", conv);
  change("/options/strategy_options/fc_devices", 4 - conv);
  (void)done(resumed("--fc-memory extended"));
  EXPECT_EQ(options()["conv_devices"], conv);
  EXPECT_EQ(options()["fc_memory"], "extended");
}

TEST_F(StrategyRun, TakesOptionsGivenWithTheirDefaultsWhenResumed) {
  (void)done(first("two_phase --devices cpu:2 --plain-broadcast --split fc2 --time-threshold 0.3"));
  EXPECT_EQ(options()["hidden_broadcast"], false);
  (void)done(resumed("--hidden-broadcast --split auto --time-threshold 0.1"));
  EXPECT_FALSE(options().contains("hidden_broadcast"));
  EXPECT_FALSE(options().contains("time_threshold"));
  EXPECT_EQ(record()["given_options"], nlohmann::json::array());
}

TEST_F(StrategyRun, KeepsTheSplitOfAutoWhenAutoIsGivenAgain) {
  (void)done(first("two_phase --devices cpu:2 --split auto"));
  const std::string other = options()["split"] == "fc1" ? "fc2" : "fc1";
  change("/options/strategy_options/split", other);
  for (const std::string steps : {"3", "4"}) {
    (void)done("train --out run --resume --split auto --steps " + steps);
    EXPECT_EQ(options()["split"], other);
  }
}

TEST_F(StrategyRun, RefusesAnOptionThatItsStrategyDoesNotHave) {
  (void)done(first("layerwise --devices cpu:2"));
  EXPECT_THAT(refusal(resumed("--hidden-broadcast")),
              HasSubstr("--hidden-broadcast is an option of strategy 'two_phase'; strategy "
                        "'layerwise' has none"));
}

// What the costs and the links of one run chose is the run's: another choice adds up otherwise.
TEST(AsymmetricRun, KeepsItsSlicesWhenItIsResumedWithOtherLinks) {
  const Desk desk;
  const std::string run = "train --out run --batch 9 --devices cpu:4 --strategy asymmetric ";
  const auto slices = [&] {
    const std::string record = desk.read("run/run.json"), name = "\"slices\": ";
    const size_t begin = record.find(name) + name.size();
    return record.substr(begin, record.find('"', begin + 1) + 1 - begin);
  };
  const Outcome first = desk.tandem(run + "--net lenet --data synthetic --steps 2");
  ASSERT_EQ(first.code, 0) << first.errors;
  const std::string chosen = slices();
  EXPECT_THAT(chosen, testing::AnyOf("\"all\"", "\"large\"", "\"none\""));
  const Outcome resumed =
      desk.tandem("train --out run --resume --steps 3 --link bandwidth=400MB/s,latency=10us");
  ASSERT_EQ(resumed.code, 0) << resumed.errors;
  EXPECT_EQ(slices(), chosen);
}

}  // namespace
}  // namespace tandem
