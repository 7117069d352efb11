// What check_lossless says is of something that ran, or is no verdict.
#include "bench/lossless_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/lossless_tally.h"
#include "core/base/error.h"
#include "core/model/net_writer.h"
#include "tests/cli/program.h"

namespace tandem::bench {
namespace {

using test::Desk;
using test::Outcome;
using testing::AllOf;
using testing::HasSubstr;

LosslessRun run_of(const std::string& devices, const std::string& strategy) {
  LosslessRun run;
  run.devices = devices;
  run.way = Way{strategy, "", {}};
  run.batch = 4;
  run.steps = 2;
  return run;
}

TEST(LosslessTally, AgreesOnlyIfSomethingWasCompared) {
  EXPECT_EQ((LosslessTally{1, 0, 0, 0, 0}.exit_code()), good);
  EXPECT_EQ((LosslessTally{0, 1, 0, 0, 0}.exit_code()), good);
  EXPECT_EQ((LosslessTally{1, 0, 0, 1, 0}.exit_code()), good);
  EXPECT_EQ((LosslessTally{0, 0, 0, 0, 0}.exit_code()), no_verdict);
  EXPECT_EQ((LosslessTally{0, 0, 0, 5, 0}.exit_code()), no_verdict);
}

TEST(LosslessTally, IsBadIfOneDiffersOrFails) {
  EXPECT_EQ((LosslessTally{2, 1, 1, 0, 0}.exit_code()), bad);
  EXPECT_EQ((LosslessTally{2, 1, 0, 1, 1}.exit_code()), bad);
  EXPECT_EQ((LosslessTally{0, 0, 0, 0, 1}.exit_code()), bad);
}

TEST(LosslessRuns, RefuseOnlyWhatIsNotAllowed) {
  Registry registry = Registry::with_defaults();
  const Desk desk;
  const NetDefinition net = read_net(desk / "tiny.prototxt");
  EXPECT_THROW((void)run_lossless(registry, net, run_of("cpu:1", "hybrid")), Refused);
}

// Labels of as many classes as the last loss has are too many for the first.
TEST(LosslessRuns, FailWhereAKernelDoes) {
  Registry registry = Registry::with_defaults();
  const std::string field = "inner_product_param { num_output: ";
  const NetDefinition net = NetWriter("two")
                                .data(4)
                                .layer("few", "InnerProduct", {"data"}, {"few"}, field + "2 }")
                                .layer("loss1", "SoftmaxWithLoss", {"few", "label"}, {"loss1"})
                                .layer("many", "InnerProduct", {"data"}, {"many"}, field + "4 }")
                                .loss()
                                .definition();
  EXPECT_THROW((void)run_lossless(registry, net, run_of("cpu:1", "sequential")), Error);
}

TEST(CheckLossless, WithoutAnythingThatCouldRunGivesNoVerdict) {
  const Desk desk;
  const Outcome outcome = desk.run(
      "check_lossless", "--net tiny.prototxt --batch 8 --devices 1 --steps 20 --strategy hybrid");
  EXPECT_EQ(outcome.code, no_verdict) << outcome.output << outcome.errors;
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("0 ran"), HasSubstr("1 refused"),
                                    HasSubstr("no verdict: nothing was compared")));
}

TEST(CheckLossless, GoesOnFromWhatHasRun) {
  const Desk desk;
  for (const char* counted : {"1 ran", "0 ran"}) {
    const Outcome outcome =
        desk.run("check_lossless",
                 "--net tiny.prototxt --batch 8 --devices 2 --steps 20 --strategy sequential "
                 "--results results.txt");
    EXPECT_EQ(outcome.code, good) << outcome.output << outcome.errors;
    EXPECT_THAT(outcome.output, HasSubstr(counted));
  }
}

}  // namespace
}  // namespace tandem::bench
