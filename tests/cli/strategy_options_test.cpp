// The options of strategies, each with what it takes and with what it does not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
              HasSubstr("--reduce star: it is none of serial, tree, ring"));
}

TEST_F(EachStrategyOption, BucketIsASize) {
  EXPECT_THAT(planned("layerwise --bucket 64KiB"), HasSubstr("closed at 64 KiB"));
  for (const char* wrong : {"many", "-1", "0", "4parsecs"}) {
    EXPECT_THAT(refusal(std::string("layerwise --bucket ") + wrong),
                AllOf(HasSubstr(std::string("--bucket ") + wrong), HasSubstr("4MiB")));
  }
}

TEST_F(EachStrategyOption, QuotaIsAtMostTheDevices) {
  EXPECT_THAT(planned("fc_parallel --quota 3"), HasSubstr("3 of 4 error pieces a round"));
  EXPECT_THAT(refusal("fc_parallel --quota 5"),
              AllOf(HasSubstr("--quota 5"), HasSubstr("at most 4")));
  EXPECT_THAT(refusal("fc_parallel --quota x"),
              AllOf(HasSubstr("--quota x"), HasSubstr("at least 1")));
}

TEST_F(EachStrategyOption, EagerNeedsMoreThanOneRound) {
  EXPECT_THAT(planned("fc_parallel --eager"),
              HasSubstr("2 of 4 error pieces a round, sent behind"));
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

TEST_F(EachStrategyOption, SlicesAreOfAllLayersOrOfLargeOnesOrNone) {
  for (const std::string slices : {"all", "large", "none"}) {
    EXPECT_THAT(planned("asymmetric --slices " + slices), HasSubstr("slices: " + slices));
  }
  EXPECT_THAT(refusal("asymmetric --slices small"),
              HasSubstr("--slices small: it is none of all, large, none"));
  EXPECT_THAT(refusal("layerwise --slices all"),
              HasSubstr("--slices is an option of strategy 'asymmetric'"));
}

// The choice decides the bits, so it is the run's, even where another one is the fastest by now.
TEST(FcParallelRun, KeepsItsQuotaWhenItIsResumed) {
  const Desk desk;
  const Outcome first = desk.tandem(
      "train --out run --batch 8 --devices cpu:4 --strategy fc_parallel --net lenet "
      "--data synthetic --steps 2");
  ASSERT_EQ(first.code, 0) << first.errors;
  EXPECT_THAT(first.output, HasSubstr("the fastest on sim: --quota 4"));
  std::string record = desk.read("run/run.json");
  const size_t quota = record.find("\"quota\": 4");
  ASSERT_NE(quota, std::string::npos);
  record.replace(quota, 10, "\"quota\": 2");
  desk.write("run/run.json", record);
  const Outcome resumed = desk.tandem("train --out run --resume --steps 3");
  ASSERT_EQ(resumed.code, 0) << resumed.errors;
  EXPECT_THAT(resumed.output, AllOf(HasSubstr("2 of 4 error pieces a round"),
                                    Not(HasSubstr("the fastest on sim"))));
  EXPECT_THAT(desk.read("run/run.json"), HasSubstr("\"quota\": 2"));
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
