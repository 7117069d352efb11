// What several processes refuse, and what is said of one that is stopped, killed or crashes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/failing_disk.h"
#include "tests/cli/program.h"
#include "tests/cli/ranks.h"

namespace tandem {
namespace {

using test::Desk;
using test::mpirun;
using test::Outcome;
using test::Ranks;
using testing::HasSubstr;
using testing::StartsWith;

TEST_F(Ranks, OfAnotherNumberAreRefused) {
  const Desk desk;
  EXPECT_THAT(desk.refusal(tiny + "--ranks 2"),
              HasSubstr("--ranks 2: this process was started alone; start the job with: mpirun"));
  const Outcome outcome = desk.tandem(tiny + "--ranks 3", mpirun(2));
  EXPECT_NE(outcome.code, 0);
  EXPECT_THAT(outcome.errors, HasSubstr("--ranks 3: the job was started with 2 processes"));
}

TEST_F(Ranks, SayOnceWhatNoneOfThemCanDo) {
  const Desk desk;
  desk.write("strange.prototxt", test::replaced(test::tiny_net(), "\"ReLU\"", "\"Strange\""));
  const auto lines = [&](const std::string& options) {
    const std::string errors = desk.tandem("train --data synthetic " + options, mpirun(3)).errors;
    int count = 0;
    for (size_t at = errors.find("tandem: "); at != std::string::npos;
         at = errors.find("tandem: ", at + 1)) {
      ++count;
    }
    return count;
  };
  EXPECT_EQ(lines("--net tiny.prototxt --batch 2"), 1) << "fewer rows than devices";
  EXPECT_EQ(lines("--net strange.prototxt"), 1);
  EXPECT_EQ(lines("--net tiny.prototxt --ranks 4"), 1);
}

// Two ranks, of which one is stopped when it reads or writes a file whose path ends so.
Outcome with_stopped_rank(const Desk& desk, int rank, const std::string& file,
                          const std::string& options, int watchdog = 10) {
  desk.write("each", R"(if [ "$OMPI_COMM_WORLD_RANK" = "$1" ]; then
  export STOPPING_FILE="$2" )" +
                         test::failing_disk +
                         R"(
  [ -n "$2" ] || kill -STOP $$
fi
shift 2
exec "$@")");
  return desk.tandem(
      "train --net tiny.prototxt --batch 5 --threads 1 --devices cpu:1 --out run "
      "--watchdog " +
          std::to_string(watchdog) + " " + options,
      mpirun(2) + " sh each " + std::to_string(rank) + " '" + file + "'");
}

testing::Matcher<std::string> names_rank(int rank, const std::string& what) {
  return testing::AllOf(
      HasSubstr("seconds (--watchdog) for rank " + std::to_string(rank) + " (host "),
      HasSubstr(") to " + what + ": it is stopped, stuck or slow"));
}

TEST_F(Ranks, ThatAreStoppedBeforeTheFirstStepAreNamed) {
  const Desk desk;
  desk.draw_two_classes("data");
  const Outcome outcome =
      with_stopped_rank(desk, 1, "train/red/1.ppm", "--data data --strategy layerwise --steps 2");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.errors, StartsWith("tandem: waited 10 seconds"));
  EXPECT_THAT(outcome.errors, names_rank(1, "come to the first step"));
}

TEST_F(Ranks, ThatAreStoppedBeforeTheyJoinTheJobAreReported) {
  const Outcome outcome = with_stopped_rank(Desk(), 1, "", "--data synthetic --steps 2", 2);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.errors,
              StartsWith("tandem: waited 2 seconds (--watchdog) for all 2 ranks to open transport "
                         "'mpi': one is stopped or stuck"));
}

TEST_F(Ranks, ThatAreStoppedInAnEvaluationAreNamed) {
  const Desk desk;
  desk.draw_two_classes("data");
  desk.draw("data/val/red", 200, 210, 30, 30);  // more than are looked at when data are compared
  const Outcome outcome = with_stopped_rank(desk, 1, "val/red/1.ppm", "--data data --epochs 1");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.errors, names_rank(1, "send the labels of a batch"));
}

TEST_F(Ranks, ThatAreStoppedWhileTheyWriteACheckpointAreNamed) {
  const Desk desk;
  const Outcome outcome =
      with_stopped_rank(desk, 0, "last.safetensors.new", "--data synthetic --steps 4 --snapshot 2");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(
      outcome.errors,
      testing::ContainsRegex("tandem: rank 1 of 2 .host .*.: (step [0-9]+: )?waited 11 seconds"));
  EXPECT_THAT(outcome.errors, names_rank(0, "send the size of a batch"));
}

// Rank 1 meets the signal when rank 0 has written a step.
Outcome with_signal(const std::string& signal) {
  const Desk desk;
  desk.write("each", R"sh([ "$OMPI_COMM_WORLD_RANK" = 0 ] || {
  (for i in $(seq 300); do
    [ "$(wc -l 2> /dev/null < run/metrics.csv)" -gt 1 ] 2> /dev/null && break
    sleep 0.1
  done; kill -)sh" + signal +
                         R"sh( $$) &
}
exec "$@")sh");
  return desk.tandem(
      "train --net tiny.prototxt --data synthetic --batch 4 --lr 1e-6 --threads 1 --devices cpu:1 "
      "--steps 100000000 --out run",
      mpirun(2) + " sh each");
}

TEST_F(Ranks, ThatCrashSayTheirHostAndStep) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer reports the signal itself";
#endif
  const Outcome outcome = with_signal("SEGV");
  EXPECT_NE(outcome.code, 0);
  EXPECT_THAT(outcome.errors,
              testing::ContainsRegex("tandem: rank 1 of 2 .host [^ ]+.: .* step [0-9]+.*SIGSEGV"));
}

// The task or the agreement on a batch waits for the other rank.
TEST_F(Ranks, ThatAreKilledAreNamedByOneThatWaitsForThem) {
  const Outcome outcome = with_signal("KILL");
  EXPECT_NE(outcome.code, 0);
  EXPECT_THAT(outcome.errors, testing::ContainsRegex(
                                  "tandem: rank 0 of 2 .host [^ ]+.: (step [0-9]+: )?.*rank 1.*: "
                                  "the process of rank 1 has ended\n"));
}

TEST_F(Ranks, RefuseWhatOnlyOneProcessCanDo) {
  const Desk desk;
  const Outcome outcome = desk.tandem(tiny + "--link bandwidth=1GB/s --devices cpu:2", mpirun(2));
  EXPECT_NE(outcome.code, 0);
  EXPECT_THAT(outcome.errors,
              HasSubstr("tandem: --link is for one process, not for several ranks"));
}

}  // namespace
}  // namespace tandem
