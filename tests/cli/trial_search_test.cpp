// `tandem search` as a user calls it: rounds of trials, one page, and a search that goes on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/program.h"
#include "tests/support/page_data.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using test::Desk;
using test::Outcome;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const std::string of_tiny =
    "search --net tiny.prototxt --data images --batch 4 --trials 4 --steps 18 ";

// The lines that name the trials of each round.
std::string trials_of(const std::string& output) {
  std::istringstream text(output);
  std::string trials;
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("round ")) trials += line + "\n";
  }
  return trials;
}

std::string best_figures(const Desk& desk, const std::string& folder) {
  const auto data = test::page_data(desk.read(folder + "/search.html"));
  return data.at("runs").at(0).at("name").get<std::string>().substr(folder.size()) +
         data.at("runs").at(0).at("best").at(1).dump() +
         data.at("runs").at(0).at("best").at(2).dump();
}

TEST(Search, UnfreezesShorterTrialsEarlier) {
  const Desk desk;
  desk.draw_two_classes("images");
  ASSERT_EQ(
      desk.tandem("train --data images --net tiny.prototxt --batch 4 --steps 1 --out first").code,
      0);
  const Outcome outcome = desk.tandem(
      "search --weights first --data images --batch 4 --trials 2 --steps 12 --unfreeze-after 2 "
      "--out found");
  ASSERT_EQ(outcome.code, 0) << outcome.errors << outcome.output;
  const auto time_of = [&](const std::string& run) -> double {
    const auto record = nlohmann::json::parse(desk.read("found/" + run + "/run.json"));
    return record.at("options").at("unfreeze_after");
  };
  EXPECT_DOUBLE_EQ(time_of("round-1-trial-01"), 2.0 / 3);
  EXPECT_DOUBLE_EQ(time_of(fs::exists(desk / "found/round-2-trial-01") ? "round-2-trial-01"
                                                                       : "round-2-trial-02"),
                   2);
}

TEST(Search, TrainsTheBestTrialsLongerAndComparesThemOnOnePage) {
  const Desk desk;
  desk.draw_two_classes("images");
  const Outcome outcome = desk.tandem(of_tiny + "--out found");
  ASSERT_EQ(outcome.code, 0) << outcome.errors << outcome.output;
  EXPECT_THAT(outcome.output,
              AllOf(HasSubstr("round 1 of 3, trial 1 (1 of 4): the usual options"),
                    HasSubstr("round 1 of 3, trial 4 (4 of 4): rate "), HasSubstr("augmentation "),
                    HasSubstr("round 3 of 3, trial "), HasSubstr("best: trial "),
                    HasSubstr("again: tandem train --net tiny.prototxt "), HasSubstr(" --lr "),
                    HasSubstr("page: found/search.html")));
  EXPECT_THAT(outcome.output, Not(HasSubstr("round 2 of 3, trial 5")));
  const auto data = test::page_data(desk.read("found/search.html"));
  EXPECT_EQ(data.at("runs").size(), 4U);  // each trial once, by its longest run
  // A ninth of 18 steps, then a third, then all.
  EXPECT_EQ(
      nlohmann::json::parse(desk.read("found/round-1-trial-02/run.json")).at("options").at("steps"),
      2);
  int last_runs = 0, with_weights = 0;
  for (const auto& entry : fs::directory_iterator(desk / "found")) {
    const std::string name = entry.path().filename().string();
    last_runs += name.starts_with("round-3") ? 1 : 0;
    with_weights += fs::exists(entry.path() / "last.safetensors") ? 1 : 0;
    if (!entry.is_directory()) continue;
    EXPECT_TRUE(fs::exists(entry.path() / "report.html")) << name;
  }
  EXPECT_EQ(last_runs, 1);
  EXPECT_EQ(with_weights, 1);
  EXPECT_THAT(desk.refusal(of_tiny + "--out found"), HasSubstr("--resume goes on with it"));
  EXPECT_THAT(desk.refusal("search --net tiny.prototxt --data images --trials 3 --steps 18 "
                           "--out found --resume"),
              HasSubstr("was begun with other options"));
}

TEST(Search, DrawsTheSameTrialsForTheSameSeedAndNothingThatIsGiven) {
  const Desk desk;
  desk.draw_two_classes("images");
  const std::string one = trials_of(desk.tandem(of_tiny + "--seed 5 --out a").output);
  EXPECT_EQ(one, trials_of(desk.tandem(of_tiny + "--seed 5 --out b").output));
  EXPECT_NE(one, trials_of(desk.tandem(of_tiny + "--seed 6 --out c").output));
  EXPECT_THAT(
      trials_of(desk.tandem(of_tiny + "--lr 0.01 --augment none --out d").output),
      AllOf(Not(HasSubstr("rate ")), Not(HasSubstr("augmentation ")), HasSubstr("image size ")));
}

TEST(Search, EndsInTheGivenTimeWithWhatThereIs) {
  const Desk desk;
  desk.draw_two_classes("images");
  const Outcome outcome = desk.tandem(of_tiny + "--time 0.01s --out found");
  EXPECT_EQ(outcome.code, 130) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("the time of --time is over"));
  EXPECT_THAT(desk.refusal(of_tiny + "--time 10 --out other"), HasSubstr("as 90s, 30m or 2h"));
}

TEST(Search, GoesOnAfterItWasStopped) {
  const Desk desk;
  desk.draw_two_classes("images");
  ASSERT_EQ(desk.tandem(of_tiny + "--out whole").code, 0);
  {
    test::RunningProgram program(desk, of_tiny + "--out parts");
    ASSERT_TRUE(program.wait_for_file(desk / "parts/round-1-trial-02/run.json"));
    (void)program.stop(SIGINT);
  }
  const Outcome outcome = desk.tandem(of_tiny + "--out parts --resume");
  ASSERT_EQ(outcome.code, 0) << outcome.errors << outcome.output;
  EXPECT_THAT(outcome.output, Not(HasSubstr("round 1 of 3, trial 1 ")));
  EXPECT_EQ(best_figures(desk, "parts"), best_figures(desk, "whole"));
}

}  // namespace
}  // namespace tandem
