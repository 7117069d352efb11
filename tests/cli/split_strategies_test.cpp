// Strategies whose devices play different roles, as a user meets them.
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

class SplitStrategies : public testing::TestWithParam<std::string> {
 protected:
  static std::string options() { return "--net tiny.prototxt --strategy " + GetParam(); }
};

INSTANTIATE_TEST_SUITE_P(All, SplitStrategies,
                         testing::Values("hybrid", "asymmetric", "fc_parallel"),
                         [](const auto& info) { return info.param; });

TEST_P(SplitStrategies, TrainTestAndContinueWithAnotherStrategy) {
  const Desk desk;
  const Outcome first =
      desk.tandem("train " + options() + " --data synthetic --devices cpu:2 --steps 4 --out run");
  ASSERT_EQ(first.code, 0) << first.errors;
  EXPECT_THAT(first.output, HasSubstr("strategy " + GetParam() + " on cpu:2"));
  EXPECT_EQ(desk.tandem("test --run run").code, 0);
  const Outcome rest =
      desk.tandem("train --out run --resume --steps 6 --devices cpu:1 --strategy sequential");
  EXPECT_EQ(rest.code, 0) << rest.errors;
  EXPECT_THAT(desk.read("run/metrics.csv"), HasSubstr("\n6,"));
}

TEST_P(SplitStrategies, ArePlannedAndProfiled) {
  const Desk desk;
  const Outcome plan =
      desk.tandem("plan " + options() + " --devices sim:2 --dot plan.dot --trace plan.json");
  ASSERT_EQ(plan.code, 0) << plan.errors;
  EXPECT_THAT(plan.output, AllOf(HasSubstr("predicted step"), HasSubstr("memory of device 1"),
                                 HasSubstr("exposed communication")));
  const Outcome profile = desk.tandem("profile " + options() + " --devices cpu:2 --steps 2");
  ASSERT_EQ(profile.code, 0) << profile.errors;
  EXPECT_THAT(profile.output, HasSubstr("send_activations"));
}

TEST_P(SplitStrategies, RefuseOneDevice) {
  const Desk desk;
  EXPECT_THAT(desk.refusal("plan " + options() + " --devices sim:1"), HasSubstr("at least 2"));
}

TEST(SplitStrategyOptions, AreRefusedInOneLineWithTheRightValues) {
  const Desk desk;
  const auto refusal = [&](const std::string& options) {
    return desk.refusal("plan --net tiny.prototxt --devices sim:4 --batch 8 " + options);
  };
  EXPECT_THAT(refusal("--strategy hybrid --conv-devices 1"), HasSubstr("3 and 1, 2 and 2"));
  EXPECT_THAT(refusal("--strategy hybrid --fc-devices 0"), HasSubstr("at least 1"));
  EXPECT_THAT(refusal("--strategy asymmetric --groups E=/W=0,1,2,3"),
              HasSubstr("group E is empty"));
  EXPECT_THAT(refusal("--strategy asymmetric --quota 2"),
              HasSubstr("--quota is an option of strategy 'fc_parallel'"));
  EXPECT_THAT(refusal("--strategy fc_parallel"),
              AllOf(HasSubstr("layer 'score'"), HasSubstr("2 neurons"), HasSubstr("4 devices")));
  EXPECT_THAT(refusal("--strategy fc_parallel --quota 0"), HasSubstr("at least 1"));
}

}  // namespace
}  // namespace tandem
