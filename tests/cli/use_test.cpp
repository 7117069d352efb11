#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/program.h"
#include "tests/support/page_data.h"

namespace tandem {
namespace {

using nlohmann::json;
using test::Desk;
using test::Outcome;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

TEST(Use, ATestOfAClassWithoutImagesHasNoRecallOfIt) {
  const Desk desk;
  desk.draw_two_classes("images");
  ASSERT_EQ(desk.tandem("train --net tiny.prototxt --data images --steps 1 --out run").code, 0);
  std::filesystem::remove_all(desk / "images/val/red");
  const Outcome text = desk.tandem("test --run run --split val");
  EXPECT_THAT(text.output, testing::ContainsRegex("red +0 +[0-9.%-]+ ?%? +-\n"));
  const auto tree = nlohmann::json::parse(desk.tandem("test --run run --split val --json").output);
  EXPECT_TRUE(tree.at("classes").at(1).at("recall").is_null());
}

TEST(Use, TrainTestAndPredictOnAFolderOfImages) {
  const Desk desk;
  desk.draw_two_classes("images");
  const Outcome trained = desk.tandem(
      "train --net tiny.prototxt --data images --devices cpu:2 --lr 0.01 --steps 40 --out run");
  ASSERT_EQ(trained.code, 0) << trained.errors;
  EXPECT_THAT(trained.output, AllOf(HasSubstr("12 training images, 2 classes"),
                                    HasSubstr("memory: "), HasSubstr("run folder: run")));
  EXPECT_THAT(trained.output, AllOf(HasSubstr("top-1 "), Not(HasSubstr("top-5 "))));
  for (const char* file : {"net.prototxt", "solver.prototxt", "run.json", "classes.txt",
                           "metrics.csv", "log.txt", "timeline.json", "plan.txt",
                           "last.safetensors", "best.safetensors", "best.state.safetensors"}) {
    EXPECT_TRUE(std::filesystem::exists(desk / ("run/" + std::string(file)))) << file;
  }

  const Outcome tested = desk.tandem("test --run run --data images --json");
  ASSERT_EQ(tested.code, 0) << tested.errors;
  const json test = json::parse(tested.output);
  EXPECT_EQ(test.at("images"), 4);
  EXPECT_EQ(test.at("top1"), 1.0) << tested.output;

  const Outcome predicted =
      desk.tandem("predict --run run --json --top 1 images/val/red/1.ppm images/val/blue/2.ppm");
  ASSERT_EQ(predicted.code, 0) << predicted.errors;
  const json predictions = json::parse(predicted.output);
  ASSERT_EQ(predictions.size(), 2u);
  EXPECT_EQ(predictions[0].at("scores")[0].at("class"), "red");
  EXPECT_EQ(predictions[1].at("scores")[0].at("class"), "blue");
}

TEST(Use, ANetThatLearnsNoProbabilitiesPredictsScores) {
  const Desk desk;
  desk.draw_two_classes("images");
  desk.write("hinge.prototxt", test::replaced(test::tiny_net(), "SoftmaxWithLoss", "HingeLoss"));
  const Outcome trained =
      desk.tandem("train --net hinge.prototxt --data images --steps 2 --out run");
  ASSERT_EQ(trained.code, 0) << trained.errors;
  const Outcome text = desk.tandem("predict --run run images/val/red/1.ppm");
  EXPECT_THAT(text.output,
              AllOf(HasSubstr("red score "), HasSubstr("blue score "), Not(HasSubstr("%"))));
  const Outcome predicted = desk.tandem("predict --run run --json images/val/red/1.ppm");
  ASSERT_EQ(predicted.code, 0) << predicted.errors;
  const json scores = json::parse(predicted.output)[0].at("scores");
  ASSERT_EQ(scores.size(), 2u);
  EXPECT_GE(scores[0].at("score").get<double>(), scores[1].at("score").get<double>());
  EXPECT_FALSE(scores[0].contains("probability"));
}

// A built-in model of the name "mine", whose solver file is for 1000 steps.
void write_model(const Desk& desk) {
  desk.make_folder("models");
  desk.write("models/mine.prototxt", test::tiny_net());
  desk.write("models/mine_solver.prototxt",
             "net: 'mine.prototxt' base_lr: 0.01 lr_policy: 'multistep' gamma: 0.1 stepvalue: 600 "
             "stepvalue: 900 momentum: 0.9 max_iter: 1000 test_interval: 500 display: 20");
}

size_t rows_of(const std::string& metrics, const std::string& split) {
  size_t rows = 0;
  for (size_t at = 0; (at = metrics.find("," + split + ",", at)) != std::string::npos; ++at) ++rows;
  return rows;
}

TEST(Use, ABuiltInModelIsValidatedEachEpochAndItsRatesFitTheRun) {
  const Desk desk;
  desk.draw_two_classes("images");
  write_model(desk);
  const std::string mine = "train --net mine --data images --epochs 5 --out ";
  const Outcome recipe = desk.tandem(mine + "recipe", "TANDEM_MODEL_PATH=models");
  ASSERT_EQ(recipe.code, 0) << recipe.errors;
  EXPECT_THAT(recipe.output, HasSubstr("schedule of 1000 steps is fitted to the 15 of this run"));
  EXPECT_EQ(rows_of(desk.read("recipe/metrics.csv"), "val"), 5U);
  EXPECT_THAT(desk.read("recipe/solver.prototxt"),
              AllOf(HasSubstr("stepvalue: 9\n"), HasSubstr("stepvalue: 14\n")));

  const Outcome given =
      desk.tandem(mine + "given --solver models/mine_solver.prototxt", "TANDEM_MODEL_PATH=models");
  ASSERT_EQ(given.code, 0) << given.errors;
  EXPECT_THAT(given.output, Not(HasSubstr("is fitted to")));
  EXPECT_EQ(rows_of(desk.read("given/metrics.csv"), "val"),
            2U);  // before the first step, at the end
  EXPECT_THAT(desk.read("given/solver.prototxt"), HasSubstr("stepvalue: 600\n"));
}

TEST(Use, TheLengthOfAModelsOwnSolverCountsOnlyWhereTheRecipeIsGiven) {
  const Desk desk;
  desk.draw_two_classes("images");
  write_model(desk);
  desk.write("models/mine_solver.prototxt",
             "net: 'mine.prototxt' base_lr: 0.001 lr_policy: 'fixed' max_iter: 7");
  const auto steps_of = [&](const std::string& more) {
    const Outcome outcome = desk.tandem("train --net mine --data images --out run" + more,
                                        "rm -rf run; TANDEM_MODEL_PATH=models");
    EXPECT_EQ(outcome.code, 0) << outcome.errors;
    return json::parse(desk.read("run/run.json")).at("options").at("steps").get<int>();
  };
  EXPECT_EQ(steps_of(""), 90);  // 30 epochs of 3 steps
  EXPECT_EQ(steps_of(" --recipe caffe"), 7);
  EXPECT_EQ(steps_of(" --solver models/mine_solver.prototxt"), 7);
}

TEST(Use, ACopyOfAModelKeepsItsSolverAndFollowsTheClasses) {
  const Desk desk;
  desk.draw_two_classes("images");
  desk.draw("images/train/green", 6, 20, 200, 20);
  desk.draw("images/val/green", 2, 30, 210, 30);
  write_model(desk);
  desk.write("copy.prototxt", desk.read("models/mine.prototxt"));
  const Outcome outcome = desk.tandem(
      "train --net copy.prototxt --data images --epochs 5 --out run", "TANDEM_MODEL_PATH=models");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr("a copy of the model mine: it is trained with that model's "
                                        "solver, and its classes follow the data"));
  EXPECT_THAT(desk.read("run/solver.prototxt"), HasSubstr("stepvalue: "));
  EXPECT_THAT(desk.read("run/net.prototxt"), HasSubstr("num_output: 3"));
}

TEST(Use, TheImageSizeIsChosenAndKept) {
  const Desk desk;
  desk.draw_two_classes("images");
  const std::string train = "train --data images --out run ";
  const Outcome outcome = desk.tandem(train + "--net tiny.prototxt --image-size 6 --steps 1");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_EQ(json::parse(desk.read("run/run.json")).at("data_shape"), json({3, 6, 6}));
  EXPECT_THAT(desk.refusal(train + "--resume --steps 2 --image-size 7"),
              HasSubstr("--image-size cannot change when run 'run' is resumed"));
  EXPECT_EQ(desk.tandem(train + "--resume --steps 2").code, 0);
  EXPECT_EQ(desk.tandem("test --run run --data images").code, 0);
}

TEST(Use, SomethingIsPrintedFromTheFirstStepOn) {
  const Desk desk;
  const Outcome outcome =
      desk.tandem("train --net tiny.prototxt --data synthetic --steps 3 --display 100 --out run");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, testing::StartsWith("reading data 'synthetic'\n"));
  EXPECT_THAT(outcome.output, HasSubstr("\nstep 1/3 "));
}

TEST(Use, LogAndMetricsHaveARowOfBothSplitsForEachEpoch) {
  const Desk desk;
  desk.draw_two_classes("images");
  const Outcome trained =
      desk.tandem("train --net tiny.prototxt --data images --epochs 3 --lr 0.01 --out run");
  ASSERT_EQ(trained.code, 0) << trained.errors;
  const std::string metrics = desk.read("run/metrics.csv"), log = desk.read("run/log.txt");
  EXPECT_EQ(rows_of(metrics, "train"), 4U);  // and one of the first step
  EXPECT_EQ(rows_of(metrics, "val"), 3U);
  for (int epoch = 1; epoch <= 3; ++epoch) {
    const std::string at = fmt::format("\n{},{},", 3 * epoch, epoch);
    EXPECT_THAT(metrics, AllOf(HasSubstr(at + "train,"), HasSubstr(at + "val,")));
    EXPECT_THAT(
        log, AllOf(HasSubstr(fmt::format("step {}/9, epoch {}: training loss ", 3 * epoch, epoch)),
                   ContainsRegex(
                       fmt::format("step {}, epoch {}: validation loss [0-9.e-]+, top-1 [0-9.]+ %",
                                   3 * epoch, epoch))));
  }
}

TEST(Use, ANetWithoutALossInTheTestPhaseIsReportedWithoutOne) {
  const Desk desk;
  desk.draw_two_classes("images");
  desk.write("net.prototxt", test::replaced(test::tiny_net(), "top: \"loss\"",
                                            "top: \"loss\" include { phase: TRAIN }"));
  const Outcome trained =
      desk.tandem("train --net net.prototxt --data images --epochs 2 --test-interval 3 --out run");
  ASSERT_EQ(trained.code, 0) << trained.errors;
  for (const std::string& text : {trained.output, desk.read("run/log.txt")}) {
    EXPECT_THAT(text, AllOf(ContainsRegex("epoch 1/2: training loss [0-9.]+, validation top-1 "),
                            Not(HasSubstr("validation loss"))));
  }
  EXPECT_THAT(trained.output, ContainsRegex("best validation [^\n]*: 4 images: top-1 "));
  EXPECT_THAT(desk.read("run/metrics.csv"), ContainsRegex("\n3,1,val,,[0-9.]+,"));
  const json page = test::page_data(desk.read("run/report.html"));
  EXPECT_TRUE(page.at("evaluations").at(0).at("loss").is_null());
  EXPECT_THAT(page.dump(), Not(HasSubstr("\"nan\"")));
  const Outcome tested = desk.tandem("test --run run --data images --json");
  ASSERT_EQ(tested.code, 0) << tested.errors;
  EXPECT_TRUE(json::parse(tested.output).at("loss").is_null()) << tested.output;
}

TEST(Use, EveryEpochHasALineWithTrainingAndValidation) {
  const Desk desk;
  desk.draw_two_classes("images");
  write_model(desk);
  const Outcome trained = desk.tandem("train --net mine --data images --epochs 3 --out run",
                                      "TANDEM_MODEL_PATH=models");
  ASSERT_EQ(trained.code, 0) << trained.errors;
  EXPECT_THAT(trained.output, Not(HasSubstr("validation after step")));
  for (int epoch = 1; epoch <= 3; ++epoch) {
    const std::string line = fmt::format(
        "epoch {}/3: training loss [0-9.]+ top-1 [0-9.]+ %, validation loss [0-9.]+ top-1 [0-9.]+ "
        "%, lr [0-9.e-]+, ",
        epoch);
    EXPECT_THAT(trained.output, ContainsRegex(line));
    EXPECT_THAT(desk.read("run/log.txt"), ContainsRegex(line));
    EXPECT_THAT(desk.read("run/metrics.csv"),
                HasSubstr(fmt::format("\n{},{},epoch,", 3 * epoch, epoch)));
  }
  EXPECT_THAT(trained.output, HasSubstr("advice: with 4 validation images one image is 25.0 "));
}

// Of every row of an epoch all that does not depend on time: step, epoch, split, loss, top-1.
std::string epoch_figures(const std::string& metrics) {
  std::istringstream lines(metrics);
  std::string figures;
  for (std::string line; std::getline(lines, line);) {
    if (line.find(",epoch,") == std::string::npos || line.starts_with("step")) continue;
    size_t end = 0;
    for (int column = 0; column < 5; ++column) end = line.find(',', end) + 1;
    figures += line.substr(0, end) + "\n";
  }
  return figures;
}

TEST(Use, AnEpochThatWasInterruptedHasTheSameFigures) {
  const Desk desk;
  desk.draw_two_classes("images");
  write_model(desk);
  const std::string train = "train --net mine --data images --solver-option lr_policy=fixed ";
  const std::string models = "TANDEM_MODEL_PATH=models";
  ASSERT_EQ(desk.tandem(train + "--steps 6 --out whole", models).code, 0);
  ASSERT_EQ(desk.tandem(train + "--steps 5 --out parts", models).code, 0);
  const Outcome resumed = desk.tandem("train --resume --out parts --steps 6", models);
  ASSERT_EQ(resumed.code, 0) << resumed.errors;
  const std::string whole = epoch_figures(desk.read("whole/metrics.csv"));
  EXPECT_THAT(whole, ContainsRegex("^3,1,epoch,[^,]+,[^,]+,\n6,2,epoch,"));
  // Besides them there is the row of the part of an epoch at which the first run ended.
  const std::string last = whole.substr(whole.find('\n') + 1);
  EXPECT_THAT(epoch_figures(desk.read("parts/metrics.csv")), testing::EndsWith(last));
}

TEST(Use, HowAStepIsSplitIsPrintedOnlyWhereItMatters) {
  const Desk desk;
  const std::string train = "train --net tiny.prototxt --data synthetic --steps 1 --out ";
  const auto has_notes = AllOf(HasSubstr("split at "), HasSubstr("AlexNet-like"));
  EXPECT_THAT(desk.tandem(train + "one").output,
              AllOf(Not(HasSubstr("split at ")), Not(HasSubstr("AlexNet-like"))));
  EXPECT_THAT(desk.tandem(train + "two --devices cpu:2").output, has_notes);
  EXPECT_THAT(desk.read("one/plan.txt"), HasSubstr("AlexNet-like"));
}

TEST(Use, PredictingNamesADamagedImageAndClassifiesTheOthers) {
  const Desk desk;
  desk.draw_two_classes("images");
  ASSERT_EQ(desk.tandem("train --net tiny.prototxt --data images --steps 10 --out run").code, 0);
  desk.write("broken.png", "no picture");
  const Outcome outcome = desk.tandem("predict --run run broken.png images/val/red/1.ppm");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.output,
              AllOf(HasSubstr("broken.png: not used: "), HasSubstr("images/val/red/1.ppm: red ")));
  EXPECT_THAT(desk.refusal("predict --run run broken.png"),
              testing::StartsWith("1 of the images cannot be used; the first: broken.png: "));
}

TEST(Use, PredictsWhatItCanBesideAFileThatIsMissing) {
  const Desk desk;
  desk.draw_two_classes("images");
  const Outcome trained =
      desk.tandem("train --net tiny.prototxt --data images --lr 0.01 --steps 40 --out run");
  ASSERT_EQ(trained.code, 0) << trained.errors;
  const Outcome outcome = desk.tandem("predict --run run gone.jpg images/val/red/1.ppm");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("images/val/red/1.ppm: red "),
                                    HasSubstr("gone.jpg: not used: does not exist")));
  EXPECT_THAT(outcome.errors, HasSubstr("1 of the images cannot be used; the first: gone.jpg: "));
}

TEST(Use, PredictingAVideoTellsHowToExtractItsFrames) {
  const Desk desk;
  desk.draw_two_classes("images");
  const Outcome trained = desk.tandem(
      "train --net tiny.prototxt --data images --devices cpu:1 --lr 0.01 --steps 40 --out run");
  ASSERT_EQ(trained.code, 0) << trained.errors;
  for (const char* name : {"clip.mp4", "CLIP.AVI"}) {
    desk.write(name, "");
    EXPECT_THAT(desk.refusal("predict --run run images/val/red/1.ppm " + std::string(name)),
                AllOf(HasSubstr(std::string(name) + ": is a video: extract frames of it"),
                      HasSubstr("ffmpeg -i VIDEO -vf fps=1 frames/%04d.png")));
  }
  EXPECT_THAT(desk.refusal("predict --run run gone.mp4"), HasSubstr("'gone.mp4' does not exist"));
  desk.write("list.txt", "images/val/red/1.ppm\n");
  EXPECT_THAT(desk.refusal("predict --run run list.txt"), HasSubstr("is a list, no image: "));
  EXPECT_THAT(desk.refusal("predict --run run 'images/val/red/*.ppm'"),
              HasSubstr("a pattern is written without quotes"));
  EXPECT_THAT(desk.refusal("predict --run run https://host/a.jpg"), HasSubstr("is an address"));
  // A folder with such a name is one of images.
  desk.draw("reds.mp4", 1, 200, 40, 40);
  const Outcome outcome = desk.tandem("predict --run run --top 1 --explain why reds.mp4");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, testing::StartsWith("reds.mp4/1.ppm: red "));
}

TEST(Use, ProfileWritesCostsThatThePlanIsPredictedFrom) {
  const Desk desk;
  const Outcome profiled = desk.tandem(
      "profile --net tiny.prototxt --devices cpu:2 --strategy two_phase --batch 8 --costs "
      "costs.csv --json");
  ASSERT_EQ(profiled.code, 0) << profiled.errors;
  const json profile = json::parse(profiled.output);
  EXPECT_GT(profile.at("step_seconds").get<double>(), 0);
  EXPECT_GT(profile.at("first_step_at_seconds").get<double>(), 0);
  EXPECT_LT(profile.at("first_step_at_seconds").get<double>(), 600) << "since the process's start";

  const Outcome planned = desk.tandem(
      "plan --net tiny.prototxt --devices sim:2 --strategy two_phase --batch 8 --costs costs.csv "
      "--dot plan.dot --trace plan.json --json");
  ASSERT_EQ(planned.code, 0) << planned.errors;
  const json plan = json::parse(planned.output);
  EXPECT_GT(plan.at("predicted_step_seconds").get<double>(), 0);
  EXPECT_EQ(plan.at("estimated_costs"), 0) << "every task was measured";
  EXPECT_THAT(desk.refusal("plan --net tiny.prototxt --costs costs.csv --precision bfloat16"),
              HasSubstr("costs.csv:2: these costs were measured in float32"));
  EXPECT_THAT(desk.read("plan.dot"), HasSubstr("digraph"));
  EXPECT_TRUE(json::accept(desk.read("plan.json")));
}

TEST(Use, CostsOfAnotherNetAreRefused) {
  const Desk desk;
  const std::string profile = "profile --steps 1 --warm-up 1 --batch 2 --net ";
  ASSERT_EQ(desk.tandem(profile + "tiny.prototxt --costs tiny.csv").code, 0);
  for (const std::string command :
       {"plan --net lenet --costs tiny.csv", "profile --net lenet --paced tiny.csv"}) {
    EXPECT_THAT(desk.refusal(command),
                HasSubstr("costs file 'tiny.csv' is of net 'tiny.prototxt', not of net 'lenet': "
                          "measure this one with `tandem profile --net lenet --costs FILE`"))
        << command;
  }
  // They have most layers' names in common.
  ASSERT_EQ(desk.tandem(profile + "lenet --costs lenet.csv").code, 0);
  EXPECT_THAT(desk.refusal("plan --net alexnet --costs lenet.csv"),
              HasSubstr("is of net 'lenet', not of net 'alexnet'"));
}

TEST(Use, CostsOfANetAreThoseOfItsCopyWithAChangedLayerAndOfAnotherBatch) {
  const Desk desk;
  const std::string profile = "profile --steps 1 --warm-up 1 --batch 2 --net tiny.prototxt ";
  ASSERT_EQ(desk.tandem(profile + "--costs tiny.csv").code, 0);
  const auto estimated = [&](const std::string& net) {
    const Outcome planned =
        desk.tandem("plan --json --devices sim:1 --batch 4 --costs tiny.csv --net " + net);
    EXPECT_EQ(planned.code, 0) << planned.errors;
    return json::parse(planned.output).at("estimated_costs").get<int>();
  };
  EXPECT_EQ(estimated("tiny.prototxt"), 0);
  desk.write("copy.prototxt", test::replaced(test::tiny_net(), "num_output: 2", "num_output: 3"));
  EXPECT_GT(estimated("copy.prototxt"), 0) << "score is another layer";
}

// Also of files from before the extents were written.
TEST(Use, CostsOfLayersWithOtherExtentsAreRefusedWhereTheFileHasThem) {
  const Desk desk;
  const std::string profile = "profile --steps 1 --warm-up 1 --batch 2 --net tiny.prototxt ";
  ASSERT_EQ(desk.tandem(profile + "--costs tiny.csv").code, 0);
  desk.write("larger.prototxt", test::replaced(test::tiny_net(), "crop_size: 8", "crop_size: 16"));
  for (const std::string command : {"plan --net larger.prototxt --costs tiny.csv",
                                    "plan --net tiny.prototxt --image-size 16 --costs tiny.csv",
                                    "profile --net larger.prototxt --paced tiny.csv"}) {
    EXPECT_THAT(
        desk.refusal(command),
        HasSubstr("costs file 'tiny.csv' is of a net 'tiny.prototxt' with other extents: its "
                  "layer 'conv1' is Convolution 3x8x8 to 4x6x6 by 4x3x3x3 4x1x1x1, that of net"))
        << command;
  }
  std::string old;
  std::istringstream lines(desk.read("tiny.csv"));
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("# layer ")) old += line + "\n";
  }
  desk.write("old.csv", old);
  const Outcome planned = desk.tandem("plan --net larger.prototxt --costs old.csv");
  EXPECT_EQ(planned.code, 0) << planned.errors;
}

TEST(Use, AFusedLayerIsShownAsFused) {
  const Desk desk;
  const std::string scale =
      "layer { name: \"scale\" type: \"Scale\" bottom: \"conv1\" top: \"conv1\" }\n";
  const std::string relu = "layer { name: \"relu1\"";
  desk.write("rectified.prototxt", test::replaced(test::tiny_net(), relu, scale + relu));
  for (const char* command : {"net rectified.prototxt --batch 4",
                              "profile --net rectified.prototxt --batch 4 --steps 1 --warm-up 1"}) {
    const Outcome shown = desk.tandem(command);
    EXPECT_EQ(shown.code, 0) << shown.errors;
    EXPECT_THAT(shown.output, HasSubstr("fused into scale")) << command;
  }
}

TEST(Use, TheTimeOfTheFirstStepIsShownOnlyWhereKnown) {
  const Desk desk;
  const std::string command = "profile --net tiny.prototxt --batch 8 --steps 1 --warm-up 1 ";
  const auto output = [&](const std::string& options) {
    const Outcome outcome = desk.tandem(command + options);
    EXPECT_EQ(outcome.code, 0) << outcome.errors;
    return outcome.output;
  };
  EXPECT_THAT(output("--devices cpu:2"), HasSubstr("first step issued"));
  for (const char* options : {"--devices sim:2", "--devices cpu:2 --strategy auto"}) {
    EXPECT_THAT(output(options), Not(HasSubstr("first step issued"))) << options;
    const std::string text = output(std::string(options) + " --json");
    EXPECT_FALSE(json::parse(text).contains("first_step_at_seconds")) << options;
  }
}

TEST(Use, TheTimelineOfARunNamesTheEightStages) {
  const Desk desk;
  ASSERT_EQ(desk.tandem("train --net tiny.prototxt --data synthetic --devices cpu:2 --steps 10 "
                        "--out run --split score")
                .code,
            0);
  const std::string timeline = desk.read("run/timeline.json");
  ASSERT_TRUE(json::accept(timeline));
  for (const char* stage :
       {"broadcast", "forward", "backward_fc", "backward_conv", "send_fc_gradients", "update_fc",
        "send_conv_gradients", "update_conv"}) {
    EXPECT_THAT(timeline, HasSubstr(stage));
  }
}

}  // namespace
}  // namespace tandem
