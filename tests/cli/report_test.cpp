// report.html of a run folder, tandem compare and tandem predict --explain, as a user sees them.
#include <gmock/gmock.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/cli/program.h"
#include "tests/support/page_data.h"

namespace tandem {
namespace {

using nlohmann::json;
using test::Desk;
using test::Outcome;
using test::page_data;
using test::RunningProgram;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

const char* const train_tiny = "train --net tiny.prototxt --data images --lr 0.01 --seed 3 ";

TEST(Report, IsInTheRunFolder) {
  const Desk desk;
  desk.draw_two_classes("images");
  const Outcome outcome = desk.tandem(std::string(train_tiny) + "--epochs 3 --out run");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr("run folder: run (report.html shows the run)"));
  const std::string page = desk.read("run/report.html");
  EXPECT_THAT(page, AllOf(StartsWith("<!doctype html>"), HasSubstr("<title>Run run</title>"),
                          EndsWith("</html>\n")));
  const json data = page_data(page);
  EXPECT_FALSE(data.at("curves").at("epoch").at("loss").empty());
  EXPECT_EQ(data.at("images"), 12);
  EXPECT_EQ(data.at("classes"), 2);
  const json& hits = data.at("findings").at("pictures").back();
  EXPECT_EQ(hits.at("title"), "Least certain hits");
  EXPECT_THAT(hits.at("cards").at(0).at("name").get<std::string>(), StartsWith("images/val/"));
  EXPECT_THAT(hits.at("cards").at(0).at("png").get<std::string>(), StartsWith("iVBORw0KGgo"));
}

TEST(Report, OfATestHasTheDamagedImagesOfTheSplitThatTheyAreIn) {
  const Desk desk;
  desk.draw_two_classes("images");
  for (const char* file : {"train/red/a.png", "train/blue/b.png", "val/red/a.png"}) {
    desk.write("images/" + std::string(file), "no picture");
  }
  ASSERT_EQ(desk.tandem(std::string(train_tiny) + "--epochs 2 --bad-limit 50 --out run").code, 0);
  const auto expect_both = [&] {
    const json splits = page_data(desk.read("run/report.html")).at("splits");
    EXPECT_EQ(splits.at(0).at("name"), "train");
    EXPECT_EQ(splits.at(0).at("damage").at(0).at("count"), 2);
    EXPECT_EQ(splits.at(1).at("name"), "val");
    EXPECT_EQ(splits.at(1).at("damage").at(0).at("count"), 1);
  };
  expect_both();
  ASSERT_EQ(desk.tandem("test --run run --split val").code, 0);
  expect_both();
  ASSERT_EQ(desk.tandem("test --run ../run --split val", "cd images &&").code, 0);
  expect_both();
}

TEST(Report, OfAResumedRunKeepsItsFindingsUntilTheNextEvaluation) {
  const Desk desk;
  desk.draw_two_classes("images");
  ASSERT_EQ(desk.tandem(std::string(train_tiny) + "--steps 6 --out run").code, 0);
  ASSERT_TRUE(page_data(desk.read("run/report.html")).at("findings").is_object());
  // Epochs end, and none of them is evaluated before the program is told to stop.
  RunningProgram run(desk, "train --resume --steps 1000000 --test-interval 900000 --out run");
  ASSERT_TRUE(run.wait_for_file(desk / "running_stdout.txt"));
  const auto says_epoch = [&] {
    return desk.read("running_stdout.txt").find("epoch 5") != std::string::npos;
  };
  for (int i = 0; i < 600 && !says_epoch(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  ASSERT_TRUE(says_epoch());
  EXPECT_EQ(run.stop(SIGINT).code, 130);
  EXPECT_TRUE(page_data(desk.read("run/report.html")).at("findings").is_object());
}

// A rate of 0 leaves the weights as they are, so that no evaluation is better than the first one.
TEST(Report, ShowsWhatTheBestWeightsFindAndNotTheLast) {
  const Desk desk;
  desk.draw_two_classes("images");
  const std::string train = "train --net tiny.prototxt --data images --lr 0 --seed 3 ";
  const auto judged = [&] {
    const json findings = page_data(desk.read("run/report.html")).at("findings");
    return findings.at("judged").get<std::string>();
  };
  ASSERT_EQ(desk.tandem(train + "--epochs 9 --patience 2 --out run").code, 0);
  EXPECT_EQ(judged(), "validation after step 3, whose weights are the best so far");
  // A resumed run keeps them, and where the page is gone says of which weights others are.
  ASSERT_EQ(desk.tandem("train --resume --out run --patience 5 --epochs 9").code, 0);
  EXPECT_EQ(judged(), "validation after step 3, whose weights are the best so far");
  std::filesystem::remove(desk / "run/report.html");
  ASSERT_EQ(desk.tandem("train --resume --out run --patience 8 --epochs 9").code, 0);
  EXPECT_THAT(judged(), HasSubstr("(not of the best weights, which are those of step 3; 'tandem "
                                  "test' shows what they find)"));
}

TEST(Report, HasTheHitsOfTheWeightsThatPredictTakes) {
  const Desk desk;
  desk.draw_two_classes("images");
  ASSERT_EQ(desk.tandem("train --net tiny.prototxt --data images --lr 0.3 --seed 3 --epochs 12 "
                        "--out run")
                .code,
            0);
  const auto right = [&] {
    return page_data(desk.read("run/report.html")).at("findings").at("right").get<int64_t>();
  };
  const int64_t trained = right();
  ASSERT_EQ(desk.tandem("test --run run").code, 0);
  EXPECT_EQ(trained, right());
}

TEST(Report, IsWholeAfterAKill) {
  const Desk desk;
  desk.draw_two_classes("images");
  RunningProgram run(desk, std::string(train_tiny) + "--epochs 100000 --out run");
  ASSERT_TRUE(run.wait_for_file(desk / "run/report.html"));
  (void)run.stop(SIGKILL);
  EXPECT_THAT(desk.read("run/report.html"), AllOf(StartsWith("<!doctype"), EndsWith("</html>\n")));
}

TEST(Report, ThatCannotBeWrittenDoesNotEndTheRun) {
  const Desk desk;
  desk.draw_two_classes("images");
  ASSERT_EQ(desk.tandem(std::string(train_tiny) + "--epochs 1 --out run").code, 0);
  std::filesystem::remove(desk / "run/report.html");
  desk.write("run/report.html/mine.txt", "a folder of this name\n");
  const Outcome more = desk.tandem("train --resume --out run --epochs 4");
  EXPECT_EQ(more.code, 0) << more.errors;
  const std::string text = more.output + more.errors;
  const size_t first = text.find("report.html was not written: ");
  ASSERT_NE(first, std::string::npos) << text;
  EXPECT_EQ(text.find("report.html was not", first + 1), std::string::npos);  // one line
}

TEST(Report, ShowsTheLastTest) {
  const Desk desk;
  desk.draw_two_classes("images");
  ASSERT_EQ(desk.tandem(std::string(train_tiny) + "--epochs 2 --out run").code, 0);
  const auto findings = [&] { return page_data(desk.read("run/report.html")).at("findings"); };
  const auto judged = [&] { return findings().at("judged").get<std::string>(); };
  ASSERT_THAT(judged(), StartsWith("validation after step"));
  const Outcome without = desk.tandem("test --run run --no-report");
  ASSERT_EQ(without.code, 0) << without.errors;
  EXPECT_THAT(without.output, Not(HasSubstr("report.html")));
  EXPECT_THAT(judged(), StartsWith("validation after step"));
  const Outcome outcome = desk.tandem("test --run run --split val");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr("run/report.html shows this test"));
  EXPECT_THAT(judged(), HasSubstr("test of the best weights on the split 'val' of 'images'"));
  EXPECT_THAT(findings().at("pictures").dump(), HasSubstr("images/val/"));
  const json data = page_data(desk.read("run/report.html"));
  EXPECT_FALSE(data.at("curves").at("epoch").at("loss").empty());
  EXPECT_THAT(data.dump(), Not(HasSubstr("validation after step")));
}

TEST(Report, ATestOfTheTrainingImagesLeavesTheValidationInItsPlace) {
  const Desk desk;
  desk.draw_two_classes("images");
  ASSERT_EQ(desk.tandem(std::string(train_tiny) + "--epochs 1 --out run").code, 0);
  const Outcome outcome = desk.tandem("test --run run --split train");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr("run/report.html shows this test"));
  const json data = page_data(desk.read("run/report.html"));
  EXPECT_THAT(data.at("findings").at("judged"), StartsWith("validation after step"));
  ASSERT_EQ(data.at("tests").size(), 1U);
  EXPECT_EQ(data.at("tests").at(0).at("samples"), 12);
  EXPECT_THAT(data.at("tests").at(0).at("judged"),
              HasSubstr("test of the best weights on the split 'train' of 'images'"));
}

TEST(Report, SaysWhichImagesOfAFolderWithoutSplitsWereTested) {
  const Desk desk;
  desk.draw_two_classes("images");
  ASSERT_EQ(desk.tandem("train --net tiny.prototxt --data images/train --epochs 1 --out run").code,
            0);
  const std::string test = "test --run run --data images/train ";
  ASSERT_EQ(desk.tandem(test).code, 0);
  EXPECT_THAT(desk.read("run/report.html"), HasSubstr("tested on the 20 % of every class"));
  const Outcome all = desk.tandem(test + "--data-option val_fraction=1 --json");
  ASSERT_EQ(all.code, 0) << all.errors;
  EXPECT_EQ(json::parse(all.output).at("images"), 12);
  EXPECT_THAT(desk.read("run/report.html"), HasSubstr("tested on all images"));
}

TEST(Predict, NamesImagesByThePathsThatWereGiven) {
  const Desk desk;
  desk.draw_two_classes("images");
  ASSERT_EQ(desk.tandem(std::string(train_tiny) + "--epochs 1 --out run").code, 0);
  const Outcome outcome =
      desk.tandem("predict --run run images/val/red ./images/val/blue/1.ppm images/val/");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, AllOf(testing::StartsWith("images/val/red/"),
                                    HasSubstr("\n./images/val/blue/1.ppm: "),
                                    HasSubstr("\nimages/val/blue/"), Not(HasSubstr("//"))));
}

TEST(Predict, RefusesAPathThatWouldBeTwoLinesOfItsOutput) {
  const Desk desk;
  desk.draw_two_classes("images");
  ASSERT_EQ(desk.tandem(std::string(train_tiny) + "--epochs 1 --out run").code, 0);
  const std::string image = desk.read("images/val/red/1.ppm");
  desk.write("two\nlines.ppm", image);
  EXPECT_THAT(desk.refusal("predict --run run 'two\nlines.ppm'"),
              AllOf(HasSubstr("two\\x0alines.ppm"), HasSubstr("contains a line break: rename it")));
  desk.write("images/val/red/two\nlines.ppm", image);
  for (const char* command : {"predict --run run images/val", "test --run run", "data images",
                              "pack images --out images.pack"}) {
    EXPECT_THAT(desk.refusal(command), HasSubstr("lines.ppm' contains a line break: rename it"))
        << command;
  }
}

TEST(Predict, ReadsAnImageFromTheStandardInput) {
  const Desk desk;
  desk.draw_two_classes("images");
  ASSERT_EQ(desk.tandem(std::string(train_tiny) + "--epochs 1 --out run").code, 0);
  const auto without_name = [](const std::string& text) { return text.substr(text.find(": ")); };
  const Outcome file = desk.tandem("predict --run run images/val/red/1.ppm");
  const Outcome piped = desk.tandem("predict --run run - < images/val/red/1.ppm");
  ASSERT_EQ(piped.code, 0) << piped.errors;
  EXPECT_THAT(piped.output, testing::StartsWith("-: "));
  EXPECT_EQ(without_name(piped.output), without_name(file.output));
  const Outcome empty = desk.tandem("predict --run run - < /dev/null");
  EXPECT_EQ(empty.code, 1);
  EXPECT_THAT(empty.output, HasSubstr("-: not used: the file is empty"));
}

TEST(Report, ThatCannotBeWrittenDoesNotEndTheTest) {
  const Desk desk;
  desk.draw_two_classes("images");
  ASSERT_EQ(desk.tandem(std::string(train_tiny) + "--epochs 1 --out run").code, 0);
  std::filesystem::remove(desk / "run/report.html");
  desk.write("run/report.html/mine.txt", "a folder of this name\n");
  const Outcome outcome = desk.tandem("test --run run --json");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.errors, HasSubstr("report.html was not written"));
  EXPECT_EQ(json::parse(outcome.output).at("images"), 4);
}

TEST(Compare, WritesOnePageOfTwoRuns) {
  const Desk desk;
  desk.draw_two_classes("images");
  ASSERT_EQ(desk.tandem(std::string(train_tiny) + "--epochs 2 --out one").code, 0);
  ASSERT_EQ(desk.tandem(std::string(train_tiny) + "--epochs 3 --batch 6 --out two").code, 0);
  const Outcome outcome = desk.tandem("compare one two");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("one "), HasSubstr("page: compare.html")));
  const std::string page = desk.read("compare.html");
  EXPECT_THAT(page, AllOf(HasSubstr("Options that differ"), EndsWith("</html>\n")));
  const json data = page_data(page);
  EXPECT_THAT(data.at("options").dump(), HasSubstr("[\"batch\",\"4\",\"6\"]"));
  EXPECT_EQ(data.at("runs").at(0).at("curves").at("val").at("loss").size(), 2U);
  EXPECT_THAT(desk.refusal("compare one"), HasSubstr("at least two run folders"));
  EXPECT_THAT(desk.refusal("compare one images"), HasSubstr("folder 'images' holds no run"));
}

TEST(Explain, WritesAPictureForEachImage) {
  const Desk desk;
  desk.draw_two_classes("images");
  ASSERT_EQ(desk.tandem(std::string(train_tiny) + "--steps 20 --out run").code, 0);
  // Two images of one name.
  const Outcome outcome = desk.tandem(
      "predict --run run --explain why --json images/val/red/1.ppm images/val/blue/1.ppm");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  const auto tree = json::parse(outcome.output);
  EXPECT_EQ(tree.at(0).at("explanation"), "why/1.explained.png");
  EXPECT_EQ(tree.at(1).at("explanation"), "why/1-2.explained.png");
  EXPECT_THAT(desk.read("why/1-2.explained.png"), StartsWith("\x89PNG"));
  desk.write("file", "not a folder\n");
  EXPECT_THAT(desk.refusal("predict --run run --explain file images/val/red/1.ppm"),
              HasSubstr("'file' is there and is not a folder"));
}

}  // namespace
}  // namespace tandem
