#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>

#include "tests/cli/failing_disk.h"
#include "tests/cli/program.h"

namespace tandem {
namespace {

using test::Desk;
using test::Outcome;
using test::RunningProgram;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// Two devices, dropout, momentum, a checkpoint every few steps; the order of the images matters.
std::string train_to(const std::string& out, int steps) {
  return "train --net tiny.prototxt --data images --devices cpu:2 --batch 4 --seed 7 --lr 0.01 "
         "--snapshot 5 --steps " +
         std::to_string(steps) + " --out " + out;
}
// Slow enough to be caught on the way; delays change no bit.
const std::string slowly = " --test-delays 3 --test-delay-ms 3";

class Resume : public testing::Test {
 protected:
  Resume() { desk_.draw_two_classes("images"); }

  void expect_success(const std::string& arguments) {
    const Outcome outcome = desk_.tandem(arguments);
    ASSERT_EQ(outcome.code, 0) << arguments << "\n" << outcome.output << outcome.errors;
  }
  void expect_same_checkpoint(const std::string& a, const std::string& b) {
    for (const char* file : {"/last.safetensors", "/last.state.safetensors"})
      EXPECT_TRUE(desk_.read(a + file) == desk_.read(b + file)) << file << " differs";
  }
  Desk desk_;
};

TEST_F(Resume, AfterAKillGivesTheBitsOfAnUninterruptedRun) {
  expect_success(train_to("whole", 60));
  {
    RunningProgram program(desk_, train_to("killed", 60) + slowly);
    ASSERT_TRUE(program.wait_for_file(desk_ / "killed/last.safetensors"));
    EXPECT_EQ(program.stop(SIGKILL).code, 128 + SIGKILL);
  }
  EXPECT_FALSE(desk_.read("killed/last.safetensors") == desk_.read("whole/last.safetensors"));
  expect_success("train --out killed --resume");
  expect_same_checkpoint("killed", "whole");
}

TEST_F(Resume, ALengthThatChangesTheRateIsSaid) {
  const auto resumed = [&](const std::string& out, const std::string& more) {
    const Outcome outcome = desk_.tandem("train --resume --out " + out + more);
    EXPECT_EQ(outcome.code, 0) << outcome.errors;
    return outcome.output;
  };
  expect_success(train_to("cosine", 6) + " --recipe photos");
  EXPECT_THAT(
      resumed("cosine", " --steps 12"),
      HasSubstr("ends with the run, which has 12 steps now instead of 6: the rate goes from"));
  expect_success(train_to("fixed", 6) + " --solver-option lr_policy=fixed");
  EXPECT_THAT(resumed("fixed", " --steps 8"), Not(HasSubstr("learning rate:")));
}

TEST_F(Resume, AnotherArchitectureOfTheProcessorIsSaidOnce) {
  const auto resumed = [&](const std::string& more) {
    const Outcome outcome = desk_.tandem("train --resume --out run --steps " + more);
    EXPECT_EQ(outcome.code, 0) << outcome.errors;
    return outcome.output;
  };
  expect_success(train_to("run", 4));
  EXPECT_THAT(resumed("6"), Not(HasSubstr("processor")));
  std::string record = desk_.read("run/run.json");
  const std::string key = "\"architecture\": \"";
  const size_t begin = record.find(key) + key.size();
  const std::string own = record.substr(begin, record.find('"', begin) - begin);
  desk_.write("run/run.json", record.replace(begin, own.size(), "riscv64"));
  EXPECT_THAT(resumed("8"),
              HasSubstr("the run was trained on riscv64 so far, and this processor is " + own +
                        ": the last bits of its numbers may differ"));
  EXPECT_THAT(resumed("10"), Not(HasSubstr("processor")));
}

TEST_F(Resume, AfterCtrlCContinuesFromTheSavedStep) {
  expect_success(train_to("whole", 60));
  RunningProgram program(desk_, train_to("stopped", 60) + slowly);
  ASSERT_TRUE(program.wait_for_file(desk_ / "stopped/last.safetensors"));
  const Outcome outcome = program.stop(SIGINT);
  EXPECT_EQ(outcome.code, 130);
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("stopped after step "), HasSubstr("and saved"),
                                    HasSubstr("tandem train --out stopped --resume")));
  expect_success("train --out stopped --resume");
  expect_same_checkpoint("stopped", "whole");
}

TEST_F(Resume, OnOtherDevicesWorks) {
  expect_success(train_to("run", 10));
  expect_success("train --out run --resume --steps 20 --devices cpu:1 --strategy sequential");
  EXPECT_THAT(desk_.read("run/metrics.csv"), HasSubstr("\n20,"));
}

TEST_F(Resume, OfACompleteRunExplainsHowToContinue) {
  expect_success(train_to("run", 10));
  const Outcome complete = desk_.tandem("train --out run --resume");
  EXPECT_EQ(complete.code, 0) << complete.errors;
  EXPECT_EQ(
      complete.output,
      "reading run 'run'\nrun 'run' is complete: it has done 10 of 10 steps; ask for more with "
      "--steps or --epochs\n");
  expect_success("train --out run --resume --steps 12");
}

TEST_F(Resume, OfARunWhoseMetricsAreLostSaysSo) {
  expect_success(train_to("run", 10));
  const auto resumed = [&](int steps) {
    return desk_.tandem("train --out run --resume --steps " + std::to_string(steps)).output;
  };
  EXPECT_THAT(resumed(12), Not(HasSubstr("metrics")));
  desk_.write("run/metrics.csv", "precious\n");
  EXPECT_THAT(resumed(14), HasSubstr("is no table of metrics: a new one begins after step 12"));
  std::filesystem::remove(desk_ / "run/metrics.csv");
  EXPECT_THAT(resumed(16), HasSubstr("a new one begins after step 14"));
}

TEST_F(Resume, LeavesOutRowsOfMetricsThatALossOfPowerHasCutOff) {
  expect_success(train_to("run", 10));
  const std::string whole = desk_.read("run/metrics.csv");
  desk_.write("run/metrics.csv", whole + "10,2,epoch,,,,,,,,\n10,2,tra");
  const Outcome resumed = desk_.tandem("train --out run --resume --steps 12");
  EXPECT_EQ(resumed.code, 0) << resumed.errors;
  EXPECT_THAT(resumed.output, HasSubstr("note: 2 of the rows of 'run/metrics.csv' were not whole"));
  const std::string now = desk_.read("run/metrics.csv");
  EXPECT_THAT(now, AllOf(testing::StartsWith(whole), Not(HasSubstr("epoch,,"))));
  EXPECT_THAT(desk_.tandem("train --out run --resume --steps 14").output, Not(HasSubstr("whole")));
}

TEST_F(Resume, IsPossibleAfterSignalsDuringTheWritingOfACheckpoint) {
  const Outcome outcome =
      desk_.tandem(train_to("run", 10), test::failing_disk + " INTERRUPTED_FSYNC=1");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  expect_success("train --out run --resume --steps 12");
}

// The report is written after the last checkpoint.
TEST_F(Resume, OfARunThatWasKilledAfterItsLastStepTellsOfTheReportAndCleansUp) {
  expect_success(train_to("run", 10));
  EXPECT_THAT(desk_.tandem("train --out run --resume").output, Not(HasSubstr("report.html")));
  for (const char* file : {"run/report.html.new", "run/last.safetensors.new", "run/mine.new"}) {
    desk_.write(file, "half");
  }
  std::filesystem::remove(desk_ / "run/report.html");
  EXPECT_THAT(desk_.tandem("train --out run --resume").output,
              AllOf(HasSubstr("'run' is complete"),
                    HasSubstr("report.html is missing: tandem test --run run writes it")));
  EXPECT_FALSE(std::filesystem::exists(desk_ / "run/report.html.new"));
  EXPECT_FALSE(std::filesystem::exists(desk_ / "run/last.safetensors.new"));
  EXPECT_TRUE(std::filesystem::exists(desk_ / "run/mine.new"));
  expect_success("test --run run");
  EXPECT_TRUE(std::filesystem::exists(desk_ / "run/report.html"));
}

// Of a run that was killed when its last checkpoint had its first name only. Names are given by
// renaming, which fails here for files that a loss of power could still empty.
TEST_F(Resume, MakesTheOtherNamesOfTheLastCheckpointOfFilesThatAreOnTheDisk) {
  for (const std::string links : {"", " NO_LINKS=1"}) {
    std::filesystem::remove_all(desk_ / "run");
    const std::string on_disk = test::failing_disk + " SYNCED_RENAMES=1" + links;
    const Outcome outcome = desk_.tandem(train_to("run", 3), on_disk);
    ASSERT_EQ(outcome.code, 0) << outcome.errors;
    for (const char* file : {"best.safetensors", "best.state.safetensors"}) {
      ASSERT_TRUE(std::filesystem::remove(desk_ / ("run/" + std::string(file))));
    }
    EXPECT_THAT(desk_.tandem("train --out run --resume", on_disk).output,
                HasSubstr("'run' is complete"));
    EXPECT_TRUE(desk_.read("run/best.safetensors") == desk_.read("run/last.safetensors"));
    EXPECT_EQ(std::filesystem::hard_link_count(desk_ / "run/best.safetensors"),
              links.empty() ? 2U : 1U);
  }
}

TEST_F(Resume, CompletesASnapshotThatAKillLeftWithNewStateAndNoWeights) {
  expect_success(train_to("run", 6));
  const std::string weights = desk_.read("run/tiny_iter_5.safetensors");
  std::filesystem::rename(desk_ / "run/tiny_iter_5.safetensors",
                          desk_ / "run/tiny_iter_5.safetensors.new");
  expect_success("train --out run --resume --steps 7");
  EXPECT_TRUE(desk_.read("run/tiny_iter_5.safetensors") == weights);
}

// The times of files say nothing where the clock was set in between.
TEST_F(Resume, OfACompleteRunTellsAnOldReportByItsStep) {
  expect_success(train_to("run", 3));
  const std::string old = desk_.read("run/report.html");
  expect_success("train --out run --resume --steps 6");
  const std::filesystem::path report = desk_ / "run/report.html";
  std::filesystem::last_write_time(report, std::filesystem::file_time_type{});
  EXPECT_THAT(desk_.tandem("train --out run --resume").output, Not(HasSubstr("report.html")));
  desk_.write("run/report.html", old);
  EXPECT_THAT(desk_.tandem("train --out run --resume").output,
              HasSubstr("report.html is older: tandem test --run run writes it"));
}

TEST_F(Resume, IsRefusedWhileAnotherProcessTrains) {
  expect_success(train_to("whole", 60));
  RunningProgram program(desk_, train_to("run", 60) + slowly);
  ASSERT_TRUE(program.wait_for_file(desk_ / "run/last.safetensors"));
  EXPECT_THAT(desk_.refusal("train --out run --resume"),
              AllOf(HasSubstr("'run' is in use"), HasSubstr("another process")));
  EXPECT_EQ(program.stop(SIGKILL).code, 128 + SIGKILL);
  expect_success("train --out run --resume");
  expect_same_checkpoint("run", "whole");
}

TEST_F(Resume, OfAFolderWithoutARunNamesWhatIsMissing) {
  EXPECT_THAT(desk_.refusal("train --out images --resume"),
              AllOf(HasSubstr("'images' holds no run"), HasSubstr("run.json")));
  EXPECT_THAT(desk_.refusal("train --resume"), HasSubstr("--resume needs --out"));
}

TEST_F(Resume, WithOtherDataOrAnotherBatchIsRefused) {
  expect_success(train_to("run", 5));
  EXPECT_THAT(desk_.refusal("train --out run --resume --steps 9 --batch 6"),
              HasSubstr("--batch cannot change when run 'run' is resumed"));
  desk_.draw("images/train/red", 8, 200, 20, 20);
  EXPECT_THAT(desk_.refusal("train --out run --resume --steps 9"),
              AllOf(HasSubstr("have changed"), HasSubstr("12 training images then, 14 now")));
}

TEST_F(Resume, WithTheDefaultOfAnOptionThatMayNotChangeIsRefused) {
  expect_success(train_to("run", 5) +
                 " --mixup 0.4 --cutmix 1 --label-smoothing 0.1 --head-lr 0.5 --ema 0.9");
  for (const std::string option :
       {"--mixup 0", "--cutmix 0", "--label-smoothing 0", "--head-lr 1", "--ema 0"}) {
    EXPECT_THAT(
        desk_.refusal("train --out run --resume --steps 7 " + option),
        HasSubstr(option.substr(0, option.find(' ')) + " cannot change when run 'run' is resumed"));
  }
  expect_success(
      "train --out run --resume --steps 7 --mixup 0.4 --cutmix 1 --label-smoothing 0.1 "
      "--head-lr 0.5 --ema 0.9");
}

TEST_F(Resume, WithTheDefaultOfAnOptionThatMayChangeTakesIt) {
  expect_success(train_to("run", 5) +
                 " --bad-limit 50 --decode-threads 2 --display 3 --test-interval 4");
  expect_success("train --out run --resume --steps 7 --devices cpu:2");
  EXPECT_THAT(desk_.read("run/run.json"),
              AllOf(HasSubstr("\"bad_share_limit\": 0.5,"), HasSubstr("\"decode_threads\": 2,"),
                    HasSubstr("\"display\": 3,"), HasSubstr("\"snapshot\": 5,"),
                    HasSubstr("\"test_interval\": 4")));
  expect_success(
      "train --out run --resume --steps 9 --bad-limit 5 --decode-threads 0 --display 0 "
      "--snapshot 0 --test-interval 0");
  EXPECT_THAT(desk_.read("run/run.json"),
              AllOf(HasSubstr("\"bad_share_limit\": 0.05,"), HasSubstr("\"decode_threads\": 0,"),
                    HasSubstr("\"display\": 20,"), HasSubstr("\"snapshot\": 0,"),
                    HasSubstr("\"test_interval\": 0")));
}

TEST_F(Resume, WithOtherWeightsOrFieldsOfTheSolverNamesTheirOption) {
  expect_success(train_to("run", 5));
  const std::string resume = "train --out run --resume --steps 7 ";
  EXPECT_THAT(desk_.refusal(resume + "--weights run"),
              HasSubstr("--weights cannot change when run 'run' is resumed"));
  EXPECT_THAT(desk_.refusal(resume + "--solver-option momentum=0.5"),
              HasSubstr("the solver's momentum cannot change when run 'run' is resumed"));
}

TEST_F(Resume, TakesWhatTheRunWasBegunWith) {
  expect_success(train_to("first", 5));
  const std::string given =
      "train --net tiny.prototxt --data images --weights first/last.safetensors --stage fine "
      "--level 1 --out run ";
  const std::string options[] = {"--solver-type Nesterov ", "--solver-option momentum=0.5 ",
                                 "--data-option scale=0.1 "};
  const std::string others[] = {"--solver-type Adam ", "--solver-option momentum=0.6 ",
                                "--data-option scale=0.2 "};
  expect_success(given + options[0] + options[1] + options[2] + "--steps 5");
  const std::string resume = given + "--resume ";
  expect_success(resume + options[0] + options[1] + options[2] + "--steps 7");
  for (const std::string& option : others) {
    EXPECT_THAT(desk_.refusal(resume + option + "--steps 9"), HasSubstr(" cannot change when run"));
  }
  EXPECT_THAT(desk_.refusal("train --out run --resume --stage raw"),
              HasSubstr("the stage or level cannot change when run"));
}

// Files of the same names, and here of the same sizes.
TEST_F(Resume, WithReplacedPicturesSaysSoOnce) {
  expect_success(train_to("run", 5));
  desk_.draw("images/train/red", 6, 20, 200, 20);
  const Outcome outcome = desk_.tandem("train --out run --resume --steps 7");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output,
              AllOf(HasSubstr("note: the training images in '"),
                    HasSubstr("6 of 12 looked at have other contents, as '"),
                    HasSubstr("images/train/red/1.ppm'"), Not(HasSubstr("validation images in"))));
  EXPECT_THAT(desk_.read("run/log.txt"), HasSubstr("note: the training images in '"));
  EXPECT_THAT(desk_.tandem("train --out run --resume --steps 9").output, Not(HasSubstr("note:")));
}

TEST_F(Resume, WithRenamedOrLongerPicturesSaysWhatDiffers) {
  expect_success(train_to("run", 5));
  std::filesystem::rename(desk_ / "images/train/red/1.ppm", desk_ / "images/train/red/one.ppm");
  EXPECT_THAT(desk_.tandem("train --out run --resume --steps 7").output,
              HasSubstr("has read so far (other names"));
  desk_.write("images/val/red/1.ppm", desk_.read("images/val/red/1.ppm") + std::string(2048, ' '));
  EXPECT_THAT(desk_.tandem("train --out run --resume --steps 9").output,
              AllOf(HasSubstr("note: the validation images in '"), HasSubstr(" in all, "),
                    HasSubstr("1 of 4 looked at has other contents")));
}

// Another folder, later times: as after moving to another machine.
TEST_F(Resume, WithACopyOfTheDataSaysNothing) {
  expect_success(train_to("run", 5));
  desk_.make_folder("elsewhere");
  std::filesystem::copy(desk_ / "images", desk_ / "elsewhere/copy",
                        std::filesystem::copy_options::recursive);
  std::filesystem::remove_all(desk_ / "images");
  const Outcome outcome = desk_.tandem("train --out run --resume --steps 7 --data elsewhere/copy");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, Not(HasSubstr("note:")));
}

TEST_F(Resume, OfATruncatedCheckpointNamesTheFileAndChangesNothing) {
  expect_success(train_to("run", 5));
  std::string bytes = desk_.read("run/last.safetensors");
  bytes.resize(bytes.size() - 100);
  desk_.write("run/last.safetensors", bytes);
  EXPECT_THAT(desk_.refusal("train --out run --resume --steps 9"),
              AllOf(HasSubstr("run/last.safetensors"), HasSubstr("truncated")));
  EXPECT_EQ(desk_.read("run/last.safetensors"), bytes);
  EXPECT_THAT(desk_.refusal("test --run run --weights last"), HasSubstr("truncated"));
}

TEST_F(Resume, OfACheckpointOfAnotherNetNamesTheArrayThatDoesNotFit) {
  desk_.write("other.prototxt", test::replaced(test::tiny_net(), "num_output: 4", "num_output: 5"));
  expect_success(train_to("run", 5));
  expect_success(test::replaced(train_to("other", 5), "tiny.prototxt", "other.prototxt"));
  for (const char* file : {"/last.safetensors", "/last.state.safetensors"})
    desk_.write(std::string("run") + file, desk_.read(std::string("other") + file));
  EXPECT_THAT(desk_.refusal("train --out run --resume --steps 9"),
              AllOf(HasSubstr("run/last.safetensors' is of another net"), HasSubstr("conv1."),
                    HasSubstr("'tiny")));
}

// Whether the file may not grow, or the disk is full.
TEST_F(Resume, AFailedWriteKeepsTheLastGoodCheckpoint) {
  expect_success(train_to("whole", 20));
  expect_success(train_to("run", 10));
  const std::string good = desk_.read("run/last.safetensors");
  ASSERT_GT(good.size(), 1024U);
  EXPECT_THAT(desk_.refusal("train --out run --resume --steps 20", "ulimit -f 1;"),
              AllOf(HasSubstr("run/"), HasSubstr("File too large")));
  EXPECT_TRUE(desk_.read("run/last.safetensors") == good);
  EXPECT_THAT(desk_.refusal("train --out run --resume --steps 20",
                            test::failing_disk + " FULL_FILE=run/last.safetensors.new"),
              AllOf(HasSubstr("run/last.safetensors.new"), HasSubstr("No space left on device")));
  EXPECT_TRUE(desk_.read("run/last.safetensors") == good);
  EXPECT_FALSE(std::filesystem::exists(desk_ / "run/last.safetensors.new"));
  expect_success("train --out run --resume --steps 20");
  expect_same_checkpoint("run", "whole");
}

// The average of the weights is a checkpoint of its own, which a resumed run writes if it is
// missing.
TEST_F(Resume, GoesOnAfterTheDiskWasFullForTheAverageAlone) {
  expect_success(train_to("whole", 10) + " --ema 0.9");
  EXPECT_THAT(desk_.refusal(train_to("run", 5) + " --ema 0.9",
                            test::failing_disk + " FULL_FILE=run/best.safetensors.new"),
              HasSubstr("run/best.safetensors.new"));
  EXPECT_FALSE(std::filesystem::exists(desk_ / "run/best.safetensors"));
  expect_success("train --out run --resume --steps 10");
  expect_same_checkpoint("run", "whole");
  expect_success(train_to("other", 5) + " --ema 0.9");
  const std::string best = desk_.read("other/best.safetensors");
  for (const char* file : {"other/best.safetensors", "other/best.state.safetensors"}) {
    std::filesystem::remove(desk_ / file);
  }
  EXPECT_THAT(desk_.tandem("train --out other --resume").output, HasSubstr("is complete"));
  EXPECT_TRUE(desk_.read("other/best.safetensors") == best);
}

// Not even when the message cannot be written, either.
TEST_F(Resume, WithAFileSizeLimitIsAnErrorAndNoCrash) {
  const std::string message = desk_.refusal(train_to("run", 50), "ulimit -f 4;");
  EXPECT_THAT(message, AllOf(HasSubstr("run/"), HasSubstr("File too large")));
#if !defined(__SANITIZE_THREAD__)  // whose own runtime writes, and is killed for it
  EXPECT_EQ(desk_.tandem("train --data nowhere", "ulimit -f 0;").code, 1);
#endif
}

TEST_F(Resume, WithALogThatIsNoRegularFileIsAnError) {
  expect_success(train_to("run", 5));
  std::filesystem::remove(desk_ / "run/metrics.csv");
  std::filesystem::create_symlink("/dev/full", desk_ / "run/metrics.csv");
  EXPECT_THAT(desk_.refusal("train --out run --resume --steps 8"),
              AllOf(HasSubstr("run/metrics.csv"), HasSubstr("not a regular file")));
}

TEST_F(Resume, WithALogOnAFullDiskIsAnError) {
  expect_success(train_to("run", 5));
  EXPECT_THAT(desk_.refusal("train --out run --resume --steps 8",
                            test::failing_disk + " FULL_FILE=run/metrics.csv"),
              AllOf(HasSubstr("run/metrics.csv' cannot be written: No space left on device")));
}

TEST_F(Resume, InAFolderThatHasBeenRemovedSaysSo) {
  expect_success(train_to("run", 5));
  const std::string run = "'" + (desk_ / "run").string() + "'";
  EXPECT_THAT(
      desk_.refusal("train --out " + run + " --resume --steps 8 --data images",
                    "mkdir gone; cd gone; rmdir ../gone;"),
      HasSubstr("'images' cannot be found from the current folder, which has been removed"));
}

}  // namespace
}  // namespace tandem
