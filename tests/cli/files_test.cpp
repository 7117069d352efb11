// Files that are not what they seem: pipes, links, disks that fail.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "tests/cli/failing_disk.h"
#include "tests/cli/program.h"
#include "tests/support/checksums.h"
#include "tests/support/page_data.h"

namespace tandem {
namespace {

using test::Desk;
using test::Outcome;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

const std::string train_tiny = "train --net tiny.prototxt --lr 0.01 --batch 4 --data ";
// A program that waits for a pipe is killed, which is no refusal.
const std::string in_time = fmt::format("timeout -s KILL {}", 30 * test::patience);

void make_pipe(const fs::path& path) {
  fs::remove(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
}

TEST(RunFolder, ThatLeadsToAFolderWithFilesByWayOfFoldersToBeMadeIsRefused) {
  const Desk desk;
  EXPECT_THAT(desk.refusal(train_tiny + "synthetic --steps 1 --out a/../b/.."),
              HasSubstr("holds files that are not a run's"));
  EXPECT_FALSE(fs::exists(desk / "run.json"));
  EXPECT_FALSE(fs::exists(desk / "a"));
  EXPECT_EQ(desk.tandem(train_tiny + "synthetic --steps 1 --out a/../b/run").code, 0);
  EXPECT_TRUE(fs::exists(desk / "b/run/run.json"));
}

TEST(Files, APipeInTheirPlaceIsRefusedAtOnce) {
  const Desk desk;
  desk.draw_two_classes("images");
  desk.write("list.csv", "path,label\nimages/train/red/1.ppm,0\nimages/train/blue/1.ppm,1\n");
  make_pipe(desk / "pipe");
  for (const std::string& arguments :
       {train_tiny + "images --class-weights pipe",
        train_tiny + "images --topology pipe --devices cpu:2", train_tiny + "images --solver pipe",
        train_tiny + "list.csv --data-option classes=pipe", std::string("net pipe"),
        std::string("plan --net tiny.prototxt --devices sim:2 --costs pipe")}) {
    EXPECT_THAT(desk.refusal(arguments, in_time),
                AllOf(HasSubstr("pipe"), HasSubstr("it is not a regular file")))
        << arguments;
  }
}

TEST(Files, APipeInARunFolderIsRefusedAtOnce) {
  const Desk desk;
  ASSERT_EQ(desk.tandem(train_tiny + "synthetic --steps 3 --out run").code, 0);
  for (const std::string name : {"run.json", "net.prototxt", "solver.prototxt", "last.safetensors",
                                 "last.state.safetensors", "metrics.csv", "log.txt", "plan.txt"}) {
    fs::remove_all(desk / "copy");
    fs::copy(desk / "run", desk / "copy");
    make_pipe(desk / ("copy/" + name));
    EXPECT_THAT(desk.refusal("train --resume --out copy --steps 6", in_time), HasSubstr(name));
  }
}

// It takes no room on the disk, and to read it would take all memory.
TEST(Files, ATextOfAGigabyteIsRefusedUnread) {
  const Desk desk;
  desk.draw_two_classes("images");
  ASSERT_EQ(desk.tandem(train_tiny + "synthetic --steps 3 --out run").code, 0);
  for (const char* name : {"large", "run/run.json"}) {
    desk.write(name, "");
    fs::resize_file(desk / name, uint64_t{1} << 30);
  }
  for (const std::string& arguments :
       {train_tiny + "images --class-weights large",
        train_tiny + "images --topology large --devices cpu:2",
        train_tiny + "images --solver large", std::string("net large"),
        std::string("plan --net tiny.prototxt --devices sim:2 --costs large"),
        std::string("train --resume --out run --steps 6")}) {
    EXPECT_THAT(desk.refusal(arguments, in_time),
                HasSubstr("has 1073741824 bytes, too many: at most 67108864 are read"))
        << arguments;
  }
}

TEST(Files, APlantedLinkIsNotFollowed) {
  const Desk desk;
  ASSERT_EQ(desk.tandem(train_tiny + "synthetic --steps 3 --out run").code, 0);
  desk.write("victim", "precious");
  for (const char* name : {"last.safetensors.new", "last.state.safetensors.new", "plan.txt.new",
                           "run.json.new", "metrics.csv.new"}) {
    fs::create_symlink(desk / "victim", desk / ("run/" + std::string(name)));
  }
  const Outcome outcome = desk.tandem("train --resume --out run --steps 6");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_EQ(desk.read("victim"), "precious");
  EXPECT_FALSE(fs::is_symlink(desk / "run/last.safetensors"));
  fs::remove(desk / "run/log.txt");
  fs::create_symlink(desk / "victim", desk / "run/log.txt");
  EXPECT_THAT(desk.refusal("train --resume --out run --steps 9"), HasSubstr("run/log.txt"));
  EXPECT_EQ(desk.read("victim"), "precious");
}

TEST(Files, APlantedPipeIsNamedAndNothingIsWrittenIntoIt) {
  const Desk desk;
  make_pipe(desk / "plan.svg.new");
  EXPECT_THAT(desk.refusal("plan --net tiny.prototxt --devices sim:2 --strategy sequential "
                           "--svg plan.svg",
                           in_time),
              AllOf(HasSubstr("file 'plan.svg' cannot be created: "),
                    HasSubstr("'plan.svg.new' is in the way, which is a pipe: remove it")));
  EXPECT_TRUE(fs::is_fifo(desk / "plan.svg.new"));
}

TEST(Files, DamagedWeightsAreRefusedEverywhere) {
  const Desk desk;
  desk.draw_two_classes("images");
  ASSERT_EQ(desk.tandem(train_tiny + "images --steps 3 --out run").code, 0);
  const std::vector<std::string> uses{
      "predict --run run --weights last images/val/red/1.ppm",
      "test --run run --weights last",
      "export --run run --weights last out.caffemodel",
      train_tiny + "images --steps 1 --out other --weights run/last.safetensors",
      "import run/last.safetensors --model tiny.prototxt --out imported",
      "train --resume --out run --steps 6"};
  const std::string good = desk.read("run/last.safetensors");
  std::string bad = good;
  for (size_t i = 1; i <= 100; ++i) bad[bad.size() - i] ^= 0x40;
  desk.write("run/last.safetensors", bad);
  for (const std::string& use : uses) {
    EXPECT_THAT(desk.refusal(use), AllOf(HasSubstr("last.safetensors"), HasSubstr("checksum")));
  }
  desk.write("run/last.safetensors", good);
  test::remove_checksums(desk / "run/last.safetensors");
  for (const std::string& use : uses) {
    EXPECT_THAT(desk.refusal(use), AllOf(HasSubstr("last.safetensors"), HasSubstr("no checksum")));
  }
}

// Training that diverges may leave them, though they are finite themselves.
TEST(Files, WeightsWhoseScoresAreNotFiniteAreOfNoUse) {
  const Desk desk;
  desk.draw_two_classes("images");
  const Outcome trained =
      desk.tandem("train --net tiny.prototxt --data images --lr 1e36 --steps 1 --out run");
  ASSERT_EQ(trained.code, 0) << trained.errors;
  EXPECT_THAT(trained.output, HasSubstr("the validation loss is not finite"));
  for (const char* use :
       {"predict --run run images/val/red/1.ppm", "predict --run run --json images/val/red/1.ppm",
        "predict --run run --explain why images/val/red/1.ppm", "test --run run",
        "export --run run out.onnx"}) {
    const Outcome outcome = desk.tandem(use);
    EXPECT_EQ(outcome.code, 1) << use;
    EXPECT_THAT(outcome.output + outcome.errors, HasSubstr("scores that are not finite")) << use;
  }
  EXPECT_FALSE(fs::exists(desk / "out.onnx"));
}

TEST(Files, AFolderNamedAsTheValueOfAnOptionIsNotTakenForIt) {
  const Desk desk;
  desk.draw_two_classes("images");
  desk.make_folder("bgr");
  desk.make_folder("elsewhere");
  ASSERT_EQ(desk.tandem(train_tiny + "images --data-option color=bgr --steps 1 --out run").code, 0);
  const Outcome outcome = desk.tandem("test --run ../run", "cd elsewhere;");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
}

TEST(Files, OtherDataLeaveOutTheOptionsThatTheyDoNotHave) {
  const Desk desk;
  desk.draw_two_classes("images");
  ASSERT_EQ(desk.tandem(train_tiny + "images --data-option cache=8 --steps 2 --out run").code, 0);
  ASSERT_EQ(desk.tandem("pack images --out images.pack").code, 0);
  const Outcome tested = desk.tandem("test --run run --data images.pack");
  EXPECT_EQ(tested.code, 0) << tested.errors;
  EXPECT_THAT(
      tested.output,
      HasSubstr("data 'images.pack': its data set has no parameter cache, which the run has"));
  EXPECT_EQ(desk.tandem("train --resume --out run --data images.pack --steps 4").code, 0);
  EXPECT_THAT(desk.refusal("test --run run --data images.pack --data-option cache=8"),
              HasSubstr("unknown parameter 'cache'"));
}

// Of the run's own data, what training held out is tested; of others, everything.
TEST(Files, AllOfOtherDataAreTested) {
  const Desk desk;
  desk.draw_two_classes("images");
  ASSERT_EQ(desk.tandem("train --net tiny.prototxt --data images/train --steps 2 --out run").code,
            0);
  const auto tested = [&](const std::string& data) {
    const Outcome outcome = desk.tandem("test --run run --json --data " + data);
    EXPECT_EQ(outcome.code, 0) << outcome.errors;
    return nlohmann::json::parse(outcome.output).at("images").get<int64_t>();
  };
  const int64_t held_out = tested("images/train");
  fs::copy(desk / "images/train", desk / "copy", fs::copy_options::recursive);
  desk.draw("one/blue", 1, 30, 30, 210);
  desk.draw("one/red", 1, 210, 30, 30);
  EXPECT_EQ(tested("copy"), held_out);
  ASSERT_EQ(desk.tandem("pack images/train --out packed").code, 0);
  EXPECT_EQ(tested("packed"), held_out);
  EXPECT_EQ(tested("one"), 2);  // one image in each class
  EXPECT_EQ(tested("images/val --data-option val_fraction=0.5") * 2, tested("images/val"));
  EXPECT_THAT(desk.tandem("test --run run --data one").output,
              HasSubstr("'one' is not the data that the run was trained on: all of its 2 images"));
  const auto page = test::page_data(desk.read("run/report.html"));
  EXPECT_THAT(page.at("findings").at("judged"), HasSubstr("'packed'"));
  EXPECT_EQ(page.at("tests").size(), 2U);
}

// A run with a val/ of its own held nothing out of its folders.
TEST(Files, AllOfAPartOfTheRunsDataAreTested) {
  const Desk desk;
  desk.draw_two_classes("images");
  ASSERT_EQ(desk.tandem("train --net tiny.prototxt --data images --steps 2 --out run").code, 0);
  const auto images_in = [&](const std::string& folder) {
    int64_t count = 0;
    for (const auto& entry : fs::recursive_directory_iterator(desk / folder)) {
      count += entry.is_regular_file() ? 1 : 0;
    }
    return count;
  };
  fs::copy(desk / "images/val", desk / "copy", fs::copy_options::recursive);
  for (const std::string folder : {"images/val", "copy", "images/train"}) {
    const Outcome outcome = desk.tandem("test --run run --data " + folder);
    ASSERT_EQ(outcome.code, 0) << outcome.errors;
    EXPECT_THAT(outcome.output, HasSubstr(std::to_string(images_in(folder)) + " images"));
    EXPECT_THAT(outcome.output,
                HasSubstr(folder == "images/train"
                              ? "has images that the run was trained on: all of its 12 images"
                              : "images of '" + folder + "' are tested"));
  }
}

// The last layer's weights are zero, so that each image of the two classes has the loss ln 2.
TEST(Files, APartOfABatchIsTestedWithTheLossOfItsImages) {
  const Desk desk;
  desk.draw_two_classes("images");
  std::string net = desk.read("tiny.prototxt");
  net.replace(net.rfind("xavier"), 6, "constant");
  desk.write("zeros.prototxt",
             test::replaced(net, "data_param { batch_size: 4 }",
                            "data_param { batch_size: 4 }\n  include { phase: TRAIN }\n}\n"
                            "layer {\n  name: 'data' type: 'Data' top: 'data' top: 'label'\n"
                            "  transform_param { crop_size: 8 }\n  data_param { batch_size: 3 "
                            "}\n  include { phase: TEST }"));
  desk.write("solver.prototxt",
             "net: 'zeros.prototxt' base_lr: 0 lr_policy: 'fixed' max_iter: 1\n"
             "test_iter: 1 test_interval: 1\n");
  const Outcome outcome = desk.tandem("train --solver solver.prototxt --data images --out run");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr("3 images: loss 0.6931"));
}

TEST(Files, ATrainingThatFailsBeforeItsFirstStepLeavesNoRunFolder) {
  const Desk desk;
  const std::string train = train_tiny + "synthetic --steps 2 --out run";
  EXPECT_THAT(desk.refusal(train, "trap '' XFSZ; ulimit -f 1;"), HasSubstr("File too large"));
  EXPECT_FALSE(fs::exists(desk / "run"));
  EXPECT_THAT(desk.refusal(train + " --data-option scale=1e38"),
              HasSubstr("step 1: the loss is not finite"));
  EXPECT_FALSE(fs::exists(desk / "run"));
  // After a step there is something to look at.
  EXPECT_THAT(desk.refusal("train --net tiny.prototxt --lr 1e30 --batch 4 --data synthetic "
                           "--steps 2 --out run"),
              HasSubstr("step 2: the loss is not finite"));
  EXPECT_TRUE(fs::exists(desk / "run/metrics.csv"));
}

TEST(Files, ATrainingThatFailsBeforeItsFirstStepKeepsTheFolderThatWasThere) {
  const Desk desk;
  const std::string train = train_tiny + "synthetic --steps 2 --data-option scale=1e38 --out ";
  desk.make_folder("empty");
  fs::create_directory_symlink("empty", desk / "link");
  for (const char* name : {"empty", "link"}) {
    EXPECT_THAT(desk.refusal(train + name), HasSubstr("step 1: the loss is not finite"));
    EXPECT_TRUE(fs::is_directory(desk / name)) << name;
    EXPECT_TRUE(fs::is_empty(desk / name)) << name;
  }
}

TEST(Files, ARunWithoutACheckpointIsNotToBeResumed) {
  const Desk desk;
  const std::string train = train_tiny + "synthetic --steps 1 --out run";
  ASSERT_EQ(desk.tandem(train).code, 0);
  EXPECT_THAT(desk.refusal(train), HasSubstr("already holds a run: go on with it (--resume)"));
  fs::remove(desk / "run/last.safetensors");
  // Nobody is told to remove what was learned.
  EXPECT_THAT(desk.refusal(train),
              HasSubstr("already holds a run with weights, but without last.safetensors"));
  EXPECT_THAT(
      desk.refusal("train --resume --out run"),
      HasSubstr("begins with the weights that are there by --weights 'run/best.safetensors' "
                "and another --out"));
  fs::rename(desk / "run/best.safetensors", desk / "run/step_1.safetensors");
  EXPECT_THAT(desk.refusal("train --resume --out run"), HasSubstr("'run/step_1.safetensors'"));
  fs::remove(desk / "run/step_1.safetensors");
  EXPECT_THAT(desk.refusal("train --resume --out run"), HasSubstr("stopped before its first one"));
  EXPECT_THAT(desk.refusal(train), HasSubstr("already holds a run that ended before its first "
                                             "checkpoint: remove the folder"));
}

TEST(Files, AFolderWithTheNameOfADataSetIsNoted) {
  const Desk desk;
  const std::string line = "is the data set of that name, not the file or folder of that name here";
  EXPECT_THAT(desk.tandem(train_tiny + "synthetic --steps 1").output, Not(HasSubstr(line)));
  desk.draw_two_classes("synthetic");
  EXPECT_THAT(desk.tandem(train_tiny + "synthetic --steps 1").output, HasSubstr(line));
}

TEST(Files, ARunGoesOnFromAnotherFolder) {
  const Desk desk;
  desk.draw_two_classes("images");
  desk.write("lists/list.csv",
             "path,label\nred/1.ppm,red\nred/2.ppm,red\nblue/1.ppm,blue\nblue/2.ppm,blue\n");
  desk.write("elsewhere/images", "another thing of the same name");
  ASSERT_EQ(desk.tandem(train_tiny + "images --steps 3 --out run").code, 0);
  ASSERT_EQ(desk.tandem(train_tiny + "lists/list.csv --data-option root=images/train --data-option "
                                     "val_fraction=0 --steps 3 --out listed")
                .code,
            0);
  for (const char* run : {"run", "listed"}) {
    const Outcome outcome =
        desk.tandem("train --resume --steps 5 --out ../" + std::string(run), "cd elsewhere;");
    EXPECT_EQ(outcome.code, 0) << outcome.errors;
  }
  EXPECT_EQ(desk.tandem("test --run ../run", "cd elsewhere;").code, 0);
}

TEST(Files, ImagesThatAreReplacedWhileTrainingAreNoted) {
  const Desk desk;
  desk.draw_two_classes("first");
  desk.draw_two_classes("second");
  fs::create_directory_symlink("first", desk / "images");
  fs::create_directory_symlink("second", desk / "other");
  test::RunningProgram program(desk, train_tiny +
                                         "images --steps 1000000 --snapshot 5 --out run "
                                         "--test-delays 3 --test-delay-ms 3");
  ASSERT_TRUE(program.wait_for_file(desk / "run/last.safetensors"));
  fs::rename(desk / "other", desk / "images");
  const Outcome outcome = program.stop(SIGTERM);
  EXPECT_THAT(outcome.output, HasSubstr("data 'images' were replaced or removed while training"));
}

TEST(Files, AnImageThatIsWrittenWhileTrainingIsNamed) {
  const Desk desk;
  desk.draw_two_classes("images");
  test::RunningProgram program(desk, train_tiny +
                                         "images --steps 1000000 --snapshot 5 --out run "
                                         "--test-delays 3 --test-delay-ms 3");
  ASSERT_TRUE(program.wait_for_file(desk / "run/last.safetensors"));
  desk.write("images/train/red/3.ppm", desk.read("images/train/red/4.ppm"));
  const Outcome outcome = program.stop(SIGTERM);
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("1 of 16 files looked at in data 'images' was"),
                                    HasSubstr("images/train/red/3.ppm'")));
}

// Checkpoints in another folder than the rest of the run would be of no use.
TEST(Files, ARunFolderThatIsMovedWhileTrainingEndsTheRun) {
  const Desk desk;
  test::RunningProgram program(desk, train_tiny +
                                         "synthetic --steps 1000000 --snapshot 5 --out run "
                                         "--test-delays 3 --test-delay-ms 3");
  ASSERT_TRUE(program.wait_for_file(desk / "run/last.safetensors"));
  fs::rename(desk / "run", desk / "moved");
  desk.make_folder("run");
  EXPECT_TRUE(program.wait_for_message("run folder 'run' was moved, replaced or removed"));
  EXPECT_EQ(program.stop(SIGTERM).code, 1);
  EXPECT_FALSE(fs::exists(desk / "run/last.safetensors"));
  EXPECT_THAT(desk.tandem("train --resume --out moved --steps 1").output, HasSubstr("is complete"));
}

TEST(Files, ALogThatIsReplacedWhileTrainingIsNoted) {
  const Desk desk;
  test::RunningProgram program(desk,
                               train_tiny +
                                   "synthetic --steps 1000000 --snapshot 5 --display 1 --out run "
                                   "--test-delays 3 --test-delay-ms 3");
  ASSERT_TRUE(program.wait_for_file(desk / "run/last.safetensors"));
  desk.write("edited.csv", desk.read("run/metrics.csv"));
  fs::rename(desk / "edited.csv", desk / "run/metrics.csv");
  ASSERT_TRUE(program.wait_for_file(desk / "run/tiny_iter_15.safetensors"));
  const Outcome outcome = program.stop(SIGTERM);
  EXPECT_EQ(outcome.code, 130) << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr("note: metrics.csv or log.txt in the run folder was "));
}

TEST(Files, NobodyElseMayWriteToAFolderThatIsMade) {
  const Desk desk;
  desk.draw_two_classes("images");
  const std::string run = train_tiny + "images --steps 1 --out runs/of/today";
  ASSERT_EQ(desk.tandem(run, "umask 0;").code, 0);
  ASSERT_EQ(desk.tandem("plugin new acme.Leaky --with c", "umask 0;").code, 0);
  ASSERT_EQ(
      desk.tandem("predict --run runs/of/today --explain maps images/val/red/1.ppm", "umask 0;")
          .code,
      0);
  for (const char* folder : {"runs", "runs/of", "runs/of/today", "acme_leaky", "maps"}) {
    EXPECT_EQ(fs::status(desk / folder).permissions(), fs::perms{0755}) << folder;
  }
  ASSERT_EQ(desk.tandem(train_tiny + "images --steps 1 --out private", "umask 077;").code, 0);
  EXPECT_EQ(fs::status(desk / "private").permissions(), fs::perms{0700});
}

TEST(Files, APackIsTheSameForEverySpellingOfItsSource) {
  const Desk desk;
  desk.draw_two_classes("images");
  for (const std::string& source :
       {std::string("images"), std::string("./images/"), (desk / "images").string()}) {
    ASSERT_EQ(desk.tandem("pack " + source + " --out new.pack").code, 0);
    fs::rename(desk / "new.pack", desk / "other.pack");
    if (source == "images") fs::copy(desk / "other.pack", desk / "first.pack");
    EXPECT_TRUE(desk.read("other.pack") == desk.read("first.pack")) << source;
  }
}

// A read that fails at times is tried again; a disk that fails ends the run. Neither is a damaged
// image, without which the weights would be others.
TEST(Files, ADiskThatFailsIsNoDamagedImage) {
  const Desk desk;
  desk.draw_two_classes("images");
  const std::string program = train_tiny + "images --decode-threads 1 --steps 6 --out ";
  const auto failing = [](int times) {
    return test::failing_disk +
           " FAILING_FILE=train/red/3.ppm FAILING_TIMES=" + std::to_string(times);
  };
  ASSERT_EQ(desk.tandem(program + "whole").code, 0);
  const Outcome again = desk.tandem(program + "again", failing(2));
  EXPECT_EQ(again.code, 0) << again.errors;
  EXPECT_TRUE(desk.read("again/last.safetensors") == desk.read("whole/last.safetensors"));
  EXPECT_THAT(desk.refusal(program + "failed", failing(1000)),
              AllOf(HasSubstr("train/red/3.ppm"), HasSubstr("Input/output error")));
  // It would be left out of the channel means alone, if this ends before it is read again. The look
  // whether all images are the same reads it first.
  EXPECT_THAT(
      desk.refusal(program + "refused", failing(2) + " FAILING_ERROR=" + std::to_string(EACCES)),
      AllOf(HasSubstr("train/red/3.ppm"), HasSubstr("Permission denied")));
}

TEST(Files, APackThatCannotBeReadIsNoOtherKindOfFile) {
  const Desk desk;
  desk.draw_two_classes("images");
  ASSERT_EQ(desk.tandem("pack images --out images.pack").code, 0);
  EXPECT_THAT(desk.refusal("data images.pack",
                           test::failing_disk + " FAILING_FILE=images.pack FAILING_TIMES=1000"),
              HasSubstr("images.pack: byte 0: cannot be read: Input/output error"));
  desk.write("empty.pack", "");
  EXPECT_THAT(desk.refusal("data empty.pack"), HasSubstr("byte 0: this is no pack of pictures"));
  for (const std::string name : {"pipe.pack", "pipe.txt", "pipe.csv"}) {
    make_pipe(desk / name);
    EXPECT_THAT(desk.refusal("data " + name, in_time), HasSubstr("it is not a regular file"));
  }
}

TEST(Files, AFailingDiskUnderARunFolderIsNamed) {
  const Desk desk;
  ASSERT_EQ(desk.tandem(train_tiny + "synthetic --steps 3 --out run").code, 0);
  EXPECT_THAT(
      desk.refusal("train --resume --out run --steps 6",
                   test::failing_disk + " FAILING_FILE=run/last.safetensors FAILING_TIMES=1000"),
      AllOf(HasSubstr("run/last.safetensors"), HasSubstr("Input/output error")));
}

}  // namespace
}  // namespace tandem
