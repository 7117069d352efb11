// What a run prints while it trains, and its solver file as the beginning of another run.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "tests/cli/program.h"

namespace tandem {
namespace {

using test::Desk;
using test::Outcome;
using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// The steps that have a line.
std::vector<std::string> steps_in(const std::string& output) {
  std::vector<std::string> steps;
  std::istringstream text(output);
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("step ")) steps.push_back(line.substr(0, line.find('/')));
  }
  return steps;
}

TEST(Progress, FollowsTheDisplayOfTheSolverUnlessItIsGiven) {
  const Desk desk;
  desk.draw_two_classes("images");
  desk.write("own_solver.prototxt",
             "net: 'tiny.prototxt' base_lr: 0.01 lr_policy: 'fixed' max_iter: 8 display: 3\n");
  const std::string train = "train --data images --solver own_solver.prototxt ";
  const Outcome own = desk.tandem(train + "--out own");
  ASSERT_EQ(own.code, 0) << own.errors;
  EXPECT_THAT(steps_in(own.output), ElementsAre("step 1", "step 3", "step 6", "step 8"));
  const Outcome given = desk.tandem(train + "--display 5 --out given");
  ASSERT_EQ(given.code, 0) << given.errors;
  EXPECT_THAT(steps_in(given.output), ElementsAre("step 1", "step 5", "step 8"));
  EXPECT_THAT(given.output, HasSubstr("display 5 instead of 3"));
  const Outcome usual =
      desk.tandem("train --data images --net tiny.prototxt --steps 8 --out usual");
  EXPECT_THAT(steps_in(usual.output), ElementsAre("step 1", "step 8"));
}

TEST(Progress, SaysOfWhichStepAnAccuracyIs) {
  const Desk desk;
  desk.draw_two_classes("images");
  const Outcome outcome = desk.tandem(
      "train --data images --net tiny.prototxt --steps 8 --test-interval 3 --display 1 --out run");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  std::istringstream text(outcome.output);
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("step 3/")) {
      EXPECT_THAT(line, Not(HasSubstr("val")));
    }
    if (line.starts_with("step 5/")) {
      EXPECT_THAT(line, HasSubstr(" % (step 3) lr "));
    }
    if (line.starts_with("step 8/")) {
      EXPECT_THAT(line, HasSubstr(" % (step 6) lr "));
    }
  }
}

// `script` runs a program in a terminal, which it gives no size: 80 columns are assumed.
TEST(Progress, StaysWithinTheLineOfATerminal) {
  if (std::system("script --version > /dev/null 2>&1") != 0) {
    GTEST_SKIP() << "there is no program 'script'";
  }
  const Desk desk;
  desk.draw_two_classes("images");
  const Outcome outcome = desk.tandem(
      "train --data images --net tiny.prototxt --steps 1000 --test-interval 100 "
      "--out run",
      "in_terminal() { script -q -e -c \"$*\" /dev/null < /dev/null; }; in_terminal");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  std::string output = outcome.output;
  std::replace(output.begin(), output.end(), '\r', '\n');
  std::istringstream text(output);
  bool has_accuracy = false;
  for (std::string line; std::getline(text, line);) {
    if (line.find("/1000 epoch ") == line.npos) continue;
    has_accuracy = has_accuracy || line.find(" % (step ") != line.npos;
    const size_t begin = line.find("\033[K");
    EXPECT_LT(line.size() - (begin == line.npos ? 0 : begin + 3), 80U) << line;
  }
  EXPECT_TRUE(has_accuracy) << outcome.output;
}

TEST(RunSolver, TrainsTheNetOfItsRunAgain) {
  const Desk desk;
  desk.draw_two_classes("images");
  ASSERT_EQ(desk.tandem("train --data images --net tiny.prototxt --steps 2 --batch 3 --lr 0.02 "
                        "--out run")
                .code,
            0);
  EXPECT_THAT(desk.read("run/solver.prototxt"), StartsWith("net: \"net.prototxt\"\n"));
  desk.write("net.prototxt", "another file of that name\n");
  const Outcome again = desk.tandem("train --data images --solver run/solver.prototxt --out again");
  ASSERT_EQ(again.code, 0) << again.errors;
  EXPECT_THAT(again.output, AllOf(HasSubstr("batch 3, of the run in whose folder the net is"),
                                  HasSubstr("2 steps")));
  EXPECT_EQ(desk.read("again/net.prototxt"), desk.read("run/net.prototxt"));
  EXPECT_EQ(desk.read("again/solver.prototxt"), desk.read("run/solver.prototxt"));
  // Weights that have a net of their own, and a net that is given, go before.
  const std::string other = "train --data images --solver run/solver.prototxt ";
  EXPECT_EQ(desk.tandem(other + "--weights again --out tuned").code, 0);
  EXPECT_EQ(desk.tandem(other + "--net tiny.prototxt --out given").code, 0);
  EXPECT_EQ(desk.tandem("train --resume --out run --steps 4").code, 0);
}

}  // namespace
}  // namespace tandem
