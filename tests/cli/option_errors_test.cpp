#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/cli/program.h"

namespace tandem {
namespace {

using test::Desk;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

std::string refusal_of_options(const std::string& options) {
  const Desk desk;
  return desk.refusal("train --net tiny.prototxt --data synthetic --steps 2 --out run " + options);
}

TEST(OptionErrors, MissingDataNamesTheOption) {
  const Desk desk;
  EXPECT_THAT(desk.refusal("train --net tiny.prototxt"),
              AllOf(HasSubstr("no data"), HasSubstr("--data"), HasSubstr("synthetic")));
}

TEST(OptionErrors, AnUnknownOptionOrCommandPointsToTheHelp) {
  EXPECT_THAT(refusal_of_options("--bach 4"), AllOf(HasSubstr("--bach"), HasSubstr("--help")));
  const Desk desk;
  EXPECT_THAT(desk.refusal("trian"),
              AllOf(HasSubstr("unknown command 'trian' (did you mean 'train'?)"),
                    HasSubstr("predict"), HasSubstr("--help")));
}

TEST(OptionErrors, MisspeltOptionsAreListedAsTypedEachWithTheNearestName) {
  EXPECT_THAT(refusal_of_options("--stpes 4 --bacth=2"),
              HasSubstr("train: unknown options '--stpes' (did you mean '--steps'?), '--bacth' "
                        "(did you mean '--batch'?)"));
  EXPECT_THAT(refusal_of_options("--epohcs 3"), HasSubstr("'--epohcs' (did you mean '--epochs'?)"));
}

TEST(OptionErrors, NamesOfOtherProgramsGetTheNameHere) {
  EXPECT_THAT(refusal_of_options("--pretrained x"),
              HasSubstr("unknown option '--pretrained' (here it is '--weights')"));
  const Desk desk;
  EXPECT_THAT(desk.refusal("evaluate"), HasSubstr("unknown command 'evaluate': here it is 'test'"));
  EXPECT_THAT(desk.refusal("report"), HasSubstr("report.html"));
  EXPECT_THAT(desk.refusal("plugins here"), HasSubstr("plugins: unexpected argument 'here'"));
}

TEST(OptionErrors, OptionsWithOneMeaningHaveTheirOtherNamesToo) {
  EXPECT_THAT(refusal_of_options("--batch-size 0"),
              HasSubstr("--batch 0: the batch must have at least 1 image"));
  EXPECT_THAT(refusal_of_options("--epoch=3"), HasSubstr("--steps 2 and --epochs 3"));
  EXPECT_THAT(refusal_of_options("--imgsz 0"),
              HasSubstr("--image-size: '0' is not a whole number"));
  EXPECT_THAT(refusal_of_options("--optimizer Sgdd"), HasSubstr("'Sgdd'"));
  const Desk desk;
  const test::Outcome outcome =
      desk.tandem("train --model tiny.prototxt --data synthetic --steps 1 --out run");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
}

TEST(OptionErrors, AnOptionThatIsGivenTwiceIsShownWithBothValues) {
  EXPECT_THAT(refusal_of_options("--lr 0.1 --lr 0.2"),
              HasSubstr("--lr is given 2 times (0.1, 0.2): give it once"));
  EXPECT_THAT(refusal_of_options("--imgsz 8 --imgsz 9"),
              HasSubstr("--image-size is given 2 times (8, 9)"));
  EXPECT_THAT(refusal_of_options("--data synthetic"),
              HasSubstr("--data is given 2 times (synthetic, synthetic)"));
  EXPECT_THAT(refusal_of_options("--momentum 0.5 --solver-option momentum=0.6"),
              HasSubstr("--solver-option momentum=0.5 and --solver-option momentum=0.6"));
  EXPECT_THAT(refusal_of_options("--data-option scale=1 --data-option scale=2"),
              HasSubstr("--data-option scale=1 and --data-option scale=2: give one of them"));
}

TEST(OptionErrors, OptionsThatPeopleTypeAreThereOrHaveAHint) {
  const Desk desk;
  const test::Outcome outcome = desk.tandem(
      "train --net tiny.prototxt --data synthetic --steps 1 --momentum 0.7 "
      "--weight-decay=0.01 --out run");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(desk.read("run/solver.prototxt"),
              AllOf(HasSubstr("momentum: 0.7"), HasSubstr("weight_decay: 0.01")));
  EXPECT_THAT(refusal_of_options("--wd -1"), HasSubstr("weight_decay is '-1'"));
  EXPECT_THAT(refusal_of_options("--num-classes 10"),
              AllOf(HasSubstr("as many classes as the data have"), HasSubstr("--adapt-classes")));
  EXPECT_THAT(refusal_of_options("--lerning-rate 1"), HasSubstr("did you mean '--learning-rate'?"));
  EXPECT_THAT(refusal_of_options("--img 0"), HasSubstr("--image-size: '0'"));
  EXPECT_THAT(refusal_of_options("--gpus 2"), HasSubstr("here it is '--devices gpu:0,1'"));
  EXPECT_THAT(refusal_of_options("--scheduler cosine"), HasSubstr("lr_policy=cosine"));
  EXPECT_THAT(refusal_of_options("--amp"), HasSubstr("here it is '--precision bfloat16'"));
  // A hint only for an option that the command has.
  EXPECT_THAT(desk.refusal("layers --gpus 2"), Not(HasSubstr("--devices")));
}

TEST(OptionErrors, StepsAndEpochsTogetherAreRefused) {
  EXPECT_THAT(refusal_of_options("--epochs 3"),
              HasSubstr("--steps 2 and --epochs 3: each is the length of the run"));
}

TEST(OptionErrors, AValueThatIsNotANumberIsQuoted) {
  EXPECT_THAT(refusal_of_options("--batch many"), AllOf(HasSubstr("--batch"), HasSubstr("many")));
}

TEST(OptionErrors, ADecimalCommaIsNoListOfValues) {
  const std::string hint = "the decimal mark is a point: 0.1";
  for (const char* option :
       {"--lr 0,1", "--momentum 0,1", "--weight-decay 0,1", "--label-smoothing 0,1", "--ema 0,1",
        "--mixup 0,1", "--head-lr 0,1", "--unfreeze-after 0,1", "--layer-decay 0,1",
        "--bad-limit 0,1", "--solver-option gamma=0,1", "--solver-option momentum=0,1",
        "--data-option scale=0,1", "--data-option val_fraction=0,1", "--watchdog 0,1"}) {
    const std::string text(option);
    const bool is_of_folder = text.find("val_fraction") != std::string::npos;
    const Desk desk;
    desk.draw_two_classes("photos");
    EXPECT_THAT(
        desk.refusal("train --net tiny.prototxt --steps 2 --out run --data " +
                     std::string(is_of_folder || text.find("scale") != text.npos ? "photos "
                                                                                 : "synthetic ") +
                     text),
        HasSubstr(hint))
        << option;
  }
  const Desk desk;
  desk.write("solver.prototxt", "net: 'tiny.prototxt'\nbase_lr: 0,1\nmax_iter: 2\n");
  EXPECT_THAT(desk.refusal("train --solver solver.prototxt --data synthetic --out run"),
              AllOf(HasSubstr("solver.prototxt:2"), HasSubstr(hint)));
}

TEST(OptionErrors, AFileForSnapshotNamesWhatGoesOn) {
  for (const char* file : {"net_iter_2.solverstate", "weights.caffemodel", "run/state"}) {
    const Desk desk;
    desk.write(file, "x");
    EXPECT_THAT(
        desk.refusal(std::string("train --net tiny.prototxt --data synthetic --snapshot ") + file),
        AllOf(HasSubstr("--resume --out RUN"), HasSubstr("'tandem import"),
              HasSubstr(std::string("--snapshot ") + file)));
  }
  EXPECT_THAT(refusal_of_options("--snapshot often"), HasSubstr("'often' is not a whole number"));
  EXPECT_THAT(refusal_of_options("--snapshot 1.5"), HasSubstr("'1.5' is not a whole number"));
}

TEST(OptionErrors, AWholeNumberIsDecimalAlsoWithZerosBeforeIt) {
  const Desk desk;
  const test::Outcome outcome =
      desk.tandem("train --net tiny.prototxt --data synthetic --steps 010 --seed 009 --out run");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, AllOf(HasSubstr(" 10 steps, "), HasSubstr("seed 9")));
}

TEST(OptionErrors, AWholeNumberThatDoesNotFitIsRefusedWithTheLimits) {
  EXPECT_THAT(refusal_of_options("--seed 99999999999999999999999"),
              HasSubstr("--seed: '99999999999999999999999' is not from 0 to 18446744073709551615"));
  EXPECT_THAT(refusal_of_options("--seed -1"), HasSubstr("--seed: '-1' is not from 0 to "));
  EXPECT_THAT(refusal_of_options("--epochs 99999999999999999999"),
              HasSubstr("--epochs: '99999999999999999999' is not from -9223372036854775808 to "));
  EXPECT_THAT(refusal_of_options("--threads 3000000000"),
              HasSubstr("--threads: '3000000000' is not from -2147483648 to 2147483647"));
}

TEST(OptionErrors, CommandsOfOtherProgramsAreTranslated) {
  const Desk desk;
  EXPECT_THAT(desk.refusal("predict --model x.pt --source a.jpg"),
              AllOf(HasSubstr("'--model' (here it is '--run FOLDER'"),
                    HasSubstr("'--source' (images are named without an option)")));
  EXPECT_THAT(desk.refusal("train data=flowers imgsz=64"),
              AllOf(HasSubstr("'data=flowers' (did you mean '--data flowers'?)"),
                    HasSubstr("'imgsz=64' (did you mean '--image-size 64'?)")));
  EXPECT_THAT(desk.refusal("train -solver a.prototxt -gpu 0"),
              AllOf(HasSubstr("'-gpu' (here it is '--devices gpu:0'"), HasSubstr("'-solver'")));
  EXPECT_THAT(desk.refusal("lr_find --data x"), HasSubstr("here it is 'train --find-lr'"));
  EXPECT_THAT(desk.refusal("export --run x --format onnx"),
              HasSubstr("the ending of the file says it: model.onnx"));
}

TEST(OptionErrors, NoThreadsAndModelsOfHardlyAPixelAreRefused) {
  EXPECT_THAT(refusal_of_options("--threads 0"), HasSubstr("--threads: '0' is not a whole number"));
  const Desk desk;
  desk.draw_two_classes("images");
  EXPECT_THAT(desk.refusal("train --data images --model lenet --image-size 5 --steps 1"),
              HasSubstr("--image-size 5: model lenet recognizes nothing"));
}

TEST(OptionErrors, AnIntervalBelowZeroIsRefused) {
  for (const std::string option : {"--display", "--snapshot", "--test-interval"}) {
    EXPECT_THAT(refusal_of_options(option + " -1"),
                HasSubstr(option + ": '-1' is not a whole number of at least 0"));
  }
}

TEST(OptionErrors, ABatchOfAPlanThatIsTooLargeIsRefused) {
  const Desk desk;
  const std::string plan = "plan --net tiny.prototxt --devices sim:4 ";
  EXPECT_THAT(desk.refusal(plan + "--batch-per-device 9223372036854775807"),
              HasSubstr("'9223372036854775807' is not a whole number from 1 to 1000000000"));
  EXPECT_THAT(desk.refusal(plan + "--batch-per-device 1000000000"),
              HasSubstr("--batch-per-device 1000000000 on 4 devices: too large"));
  EXPECT_THAT(desk.refusal(plan + "--batch 9223372036854775807"),
              HasSubstr("'9223372036854775807' is not a whole number from 1 to 1000000000"));
}

TEST(OptionErrors, ARooflineMustBeAFiniteNumberAboveZero) {
  const Desk desk;
  for (const std::string flops : {"nan", "inf", "0", "-1"}) {
    EXPECT_THAT(desk.refusal("plan --net tiny.prototxt --flops " + flops),
                HasSubstr("--flops " + flops + ": a finite number above 0"));
  }
}

TEST(OptionErrors, AZeroOrNegativeBatchIsRefused) {
  EXPECT_THAT(refusal_of_options("--batch 0"),
              HasSubstr("--batch 0: the batch must have at least 1 image"));
  EXPECT_THAT(refusal_of_options("--batch -3"),
              HasSubstr("--batch -3: the batch must have at least 1 image"));
}

TEST(OptionErrors, AWatchdogThatIsNoTimeToWaitIsRefused) {
  for (const char* const value : {"0", "0.5", "-1", "nan"}) {
    const std::string option = std::string("--watchdog ") + value;
    EXPECT_THAT(refusal_of_options(option), HasSubstr(option + ": at least 1 second"));
  }
  EXPECT_THAT(refusal_of_options("--watchdog 1e300"),
              HasSubstr("--watchdog 1e300: at most 1000000000 seconds"));
  EXPECT_THAT(refusal_of_options("--watchdog soon"),
              HasSubstr("--watchdog soon: it must be a number of seconds"));
  const Desk desk;
  EXPECT_THAT(desk.refusal("test --run run --watchdog 0"),
              HasSubstr("--watchdog 0: at least 1 second"));
}

TEST(OptionErrors, AHugeBatchIsRefusedBeforeAnyAllocation) {
  EXPECT_THAT(refusal_of_options("--batch 9000000000000000000"), HasSubstr("9000000000000000000"));
}

TEST(OptionErrors, TooMuchMemoryIsForecastWithABatchThatFits) {
  EXPECT_THAT(refusal_of_options("--batch 500000000"),
              AllOf(HasSubstr("device 0 (cpu) needs "), HasSubstr(" TiB, "),
                    HasSubstr(" are available; batch "), HasSubstr(" fits")));
}

TEST(OptionErrors, MoreDevicesThanImagesNamesBothNumbers) {
  EXPECT_THAT(refusal_of_options("--devices cpu:4 --batch 3"),
              AllOf(HasSubstr("3"), HasSubstr("4 devices")));
}

TEST(OptionErrors, AnUnknownStrategyGivesTheNearName) {
  EXPECT_THAT(refusal_of_options("--strategy two_fase"),
              AllOf(HasSubstr("'two_fase'"), HasSubstr("did you mean 'two_phase'?")));
}

TEST(OptionErrors, AnUnknownDeviceGivesTheKnownKinds) {
  EXPECT_THAT(refusal_of_options("--devices tpu"), AllOf(HasSubstr("'tpu'"), HasSubstr("cpu")));
  EXPECT_THAT(refusal_of_options("--devices cpu:0"),
              AllOf(HasSubstr("cpu:0"), HasSubstr("from 1 to")));
  EXPECT_THAT(refusal_of_options("--devices cpu:x"), HasSubstr("cpu:x"));
}

TEST(OptionErrors, TrainingOnSimulatedDevicesIsRefused) {
  EXPECT_THAT(refusal_of_options("--devices sim:2"),
              AllOf(HasSubstr("'sim:2' simulate time"), HasSubstr("use cpu")));
}

TEST(OptionErrors, GraphsAreRefusedWhereDevicesHaveNone) {
  EXPECT_THAT(refusal_of_options("--graphs on"),
              HasSubstr("--graphs on: backend 'cpu' captures no graphs"));
  EXPECT_THAT(refusal_of_options("--graphs maybe"),
              HasSubstr("--graphs maybe: it is auto, on or off"));
}

TEST(OptionErrors, AnUnknownSplitLayerIsNamed) {
  EXPECT_THAT(refusal_of_options("--split scores"),
              AllOf(HasSubstr("--split scores: net 'tiny' has no such layer"),
                    HasSubstr("did you mean 'score'?")));
}

TEST(OptionErrors, ABadLinkShowsTheFormat) {
  EXPECT_THAT(refusal_of_options("--devices cpu:2 --link fast"),
              AllOf(HasSubstr("fast"), HasSubstr("bandwidth=")));
}

TEST(OptionErrors, ALearningRateMustBeAFiniteNumber) {
  EXPECT_THAT(refusal_of_options("--lr -1"), AllOf(HasSubstr("--lr -1"), HasSubstr("at least 0")));
  EXPECT_THAT(refusal_of_options("--lr nan"), AllOf(HasSubstr("--lr nan"), HasSubstr("finite")));
}

TEST(OptionErrors, ALossThatIsNotFiniteNamesStepAndLayer) {
  const Desk desk;
  EXPECT_THAT(
      desk.refusal("train --net tiny.prototxt --data synthetic --steps 50 --lr 1e30 --out run"),
      AllOf(HasSubstr("step "), HasSubstr("not finite"),
            AnyOf(HasSubstr("layer '"), HasSubstr("weights '")), HasSubstr("--lr")));
}

TEST(OptionErrors, ANumberOfDecoderThreadsThatCannotBeIsRefusedBeforeTheRunFolderIsMade) {
  const Desk desk;
  const std::string train = "train --net tiny.prototxt --data synthetic --steps 2 --out run";
  for (const std::string option : {"--decode-threads -1", "--decode-threads 100000"}) {
    EXPECT_THAT(desk.refusal(train + " " + option), HasSubstr(option + ": from 1 to 1024, or 0"));
    EXPECT_FALSE(std::filesystem::exists(desk / "run"));
  }
  EXPECT_EQ(desk.tandem(train + " --decode-threads 2").code, 0);
}

TEST(OptionErrors, ARunFolderThatCannotBeWrittenIsNamed) {
  const Desk desk;
  desk.write("a_file", "");
  EXPECT_THAT(
      desk.refusal("train --net tiny.prototxt --data synthetic --steps 2 --out a_file"),
      HasSubstr("run folder 'a_file' cannot be made: 'a_file' is there and is not a folder"));
  EXPECT_THAT(desk.refusal("train --net tiny.prototxt --data synthetic --steps 2 --out a_file/run"),
              HasSubstr("'a_file/run' cannot be made: 'a_file' is there and is not a folder"));
  EXPECT_THAT(
      desk.refusal("train --net tiny.prototxt --data synthetic --steps 2 --out /proc/tandem"),
      AllOf(HasSubstr("'/proc/tandem'"), HasSubstr("cannot be made")));
}

TEST(OptionErrors, ARunFolderThatHoldsARunIsNotOverwritten) {
  const Desk desk;
  const std::string train = "train --net tiny.prototxt --data synthetic --steps 2 --out run";
  ASSERT_EQ(desk.tandem(train).code, 0);
  const std::string weights = desk.read("run/last.safetensors");
  EXPECT_THAT(desk.refusal(train),
              AllOf(HasSubstr("'run' already holds a run"), HasSubstr("--resume")));
  EXPECT_EQ(desk.read("run/last.safetensors"), weights);
}

TEST(OptionErrors, AFolderWithoutARunIsRefused) {
  const Desk desk;
  EXPECT_THAT(desk.refusal("predict --run nowhere a.jpg"),
              AllOf(HasSubstr("'nowhere' holds no run"), HasSubstr("run.json")));
  EXPECT_THAT(desk.refusal("test --run nowhere"), HasSubstr("'nowhere' holds no run"));
}

TEST(OptionErrors, AFolderNearARunNamesTheRun) {
  const Desk desk;
  desk.draw_two_classes("images");
  ASSERT_EQ(desk.tandem("train --net tiny.prototxt --data images --steps 1 --out runs/one").code,
            0);
  const std::string predict = " images/val/red/1.ppm";
  for (const char* wrong : {"runs", "one"}) {
    EXPECT_THAT(desk.refusal("predict --run " + std::string(wrong) + predict),
                HasSubstr("(did you mean 'runs/one'?)"))
        << wrong;
  }
  EXPECT_THAT(desk.refusal("train images runs"),
              HasSubstr("'images' (did you mean '--data images'?), 'runs' (see"));
  EXPECT_THAT(desk.refusal("train --data images runs"), Not(HasSubstr("did you mean")));
  for (const char* wrong : {"predict runs/one", "test runs/one"}) {
    EXPECT_THAT(desk.refusal(wrong + predict),
                HasSubstr("--run is required (did you mean '--run runs/one'?)"))
        << wrong;
  }
  EXPECT_THAT(desk.refusal("predict" + predict), HasSubstr("--run is required (see"));
}

TEST(OptionErrors, WithoutDataNothingIsRead) {
  const Desk desk;
  EXPECT_THAT(desk.tandem("train").output, Not(HasSubstr("reading data")));
  EXPECT_THAT(desk.refusal("train"), HasSubstr("no data: name a folder of images"));
}

TEST(Help, IsPrintedForEveryCommand) {
  const Desk desk;
  for (const char* command :
       {"train", "test", "predict", "profile", "plan", "layers", "plugins", "devices"}) {
    const test::Outcome outcome = desk.tandem(std::string(command) + " --help");
    EXPECT_EQ(outcome.code, 0) << command;
    EXPECT_THAT(outcome.output, HasSubstr("--help")) << command;
    EXPECT_EQ(outcome.errors, "") << command;
  }
}

TEST(Help, IsPrintedWithoutArguments) {
  const Desk desk;
  const test::Outcome outcome = desk.tandem("");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.errors, "");
  EXPECT_EQ(outcome.output, desk.tandem("--help").output);
}

TEST(Help, ShowsOptionsForExpertsOnRequest) {
  const Desk desk;
  const std::string usual = desk.tandem("train --help").output;
  EXPECT_THAT(usual, AllOf(HasSubstr("\nTraining:\n"), HasSubstr("--epochs"),
                           testing::Not(HasSubstr("--watchdog"))));
  const test::Outcome all = desk.tandem("train --help-all");
  EXPECT_EQ(all.code, 0);
  EXPECT_THAT(all.output, AllOf(HasSubstr("\nTraining:\n"), HasSubstr("--epochs"),
                                HasSubstr("\nDevices and kernels:\n"), HasSubstr("--watchdog")));
}

TEST(Help, IsACommand) {
  const Desk desk;
  EXPECT_EQ(desk.tandem("help").output, desk.tandem("--help").output);
  const test::Outcome outcome = desk.tandem("help train");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.output, desk.tandem("train --help").output);
  EXPECT_THAT(desk.refusal("help trian"), HasSubstr("did you mean 'train'?"));
}

}  // namespace
}  // namespace tandem
