#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/program.h"

namespace tandem {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(BenchStall, RefusesAnUnknownStrategy) {
  const test::Desk desk;
  const test::Outcome outcome =
      desk.run("bench_stall", "--net tiny.prototxt --strategy hybrd --steps 10");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.errors,
              AllOf(HasSubstr("unknown strategy 'hybrd'"), HasSubstr("did you mean 'hybrid'?")));
  EXPECT_EQ(outcome.output, "");
}

TEST(BenchStall, MeasuresTheGivenStrategy) {
  const test::Desk desk;
  const test::Outcome outcome =
      desk.run("bench_stall",
               "--net tiny.prototxt --strategy hybrid --steps 10 --batch-per-device 4 "
               "--milliseconds 50");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("a full ring loses at most (the read less 2 steps)"),
                                    HasSubstr("| hybrid | ")));
}

}  // namespace
}  // namespace tandem
