// Training on a list whose images have several labels or numbers, and all that is done with such a
// run: resume, strategies, ranks, tests, predictions, packs, ONNX, cross-validation, views.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/cli/ranks.h"
#include "tests/support/page_data.h"

namespace tandem {
namespace {

using nlohmann::json;
using test::checkpoint;
using test::Desk;
using test::Outcome;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// Twelve pictures of each of four colors; red and bright are labels, the amount of red is a number.
class SeveralLabels : public testing::Test {
 protected:
  SeveralLabels() {
    std::string labels = "path,red,bright\n", tags = "path,tags\n", numbers = "path,amount\n";
    for (int i = 0; i < 4; ++i) {
      const bool red = i % 2 == 1, bright = i > 1;
      const int high = bright ? 240 : 120, low = bright ? 160 : 10;
      const std::string name = "color" + std::to_string(i);
      desk_.draw(name, 12, red ? high : low, low, red ? low : high);
      for (int k = 1; k <= 12; ++k) {
        const std::string path = fmt::format("{}/{}.ppm", name, k);
        labels += fmt::format("{},{:d},{:d}\n", path, red, bright);
        tags += fmt::format("{},{}{}{}\n", path, red ? "red" : "", red && bright ? "|" : "",
                            bright ? "bright" : "");
        numbers += fmt::format("{},{:.1f}\n", path, double(red ? high : low));
      }
    }
    desk_.write("labels.csv", labels);
    desk_.write("tags.csv", tags);
    desk_.write("numbers.csv", numbers);
  }

  // `name`: of the list; the run has it, too.
  Outcome train(const std::string& name, const std::string& options) const {
    return desk_.tandem(
        fmt::format("train --net tiny.prototxt --adapt-classes --data {0}.csv "
                    "--threads 1 --lr 0.02 --batch 8 --seed 3 --out {0} {1}",
                    name, options));
  }
  [[nodiscard]] json tested(const std::string& options) const {
    const Outcome outcome = desk_.tandem("test --json --no-report " + options);
    EXPECT_EQ(outcome.code, 0) << outcome.errors;
    return json::parse(outcome.output);
  }
  [[nodiscard]] json predicted(const std::string& options) const {
    const Outcome outcome = desk_.tandem("predict --json " + options);
    EXPECT_EQ(outcome.code, 0) << outcome.errors;
    return json::parse(outcome.output);
  }

  Desk desk_;
};

TEST_F(SeveralLabels, AreLearnedTestedAndPredicted) {
  const Outcome trained = train("labels", "--epochs 30");
  ASSERT_EQ(trained.code, 0) << trained.errors;
  EXPECT_THAT(trained.output,
              AllOf(HasSubstr("2 columns of 0 and 1: several labels"), HasSubstr("task multilabel"),
                    HasSubstr("SigmoidCrossEntropyLoss instead of SoftmaxWithLoss"),
                    HasSubstr("38 training images, 2 labels"), HasSubstr(" mAP ")));
  EXPECT_THAT(desk_.read("labels/metrics.csv"), HasSubstr("loss,mAP,F1,rate"));
  const json test = tested("--run labels");
  EXPECT_GT(test.at("metrics").at("mAP"), 0.95);
  EXPECT_EQ(test.at("figures").size(), 2U);
  EXPECT_EQ(test.at("figures")[0].at("name"), "red");
  const json both = predicted("--run labels color3/1.ppm color0/1.ppm");
  ASSERT_EQ(both[0].at("scores").size(), 2U);
  EXPECT_GE(both[0].at("scores")[0].at("probability"), 0.5);
  EXPECT_TRUE(both[1].at("scores").empty());
  EXPECT_THAT(desk_.tandem("predict --run labels color0/1.ppm").output, HasSubstr("no label"));
  EXPECT_EQ(predicted("--run labels --threshold 0 color0/1.ppm")[0].at("scores").size(), 2U);
  EXPECT_THAT(desk_.refusal("predict --run labels --threshold 2 color0/1.ppm"),
              HasSubstr("a probability from 0 to 1"));
  const json page = test::page_data(desk_.read("labels/report.html"));
  EXPECT_EQ(page.at("task"), "labels");
  EXPECT_EQ(page.at("findings").at("targets").size(), 2U);
}

TEST_F(SeveralLabels, PricesAreClassesWhereTheOptionSaysSo) {
  std::string list = "path,price\n";
  for (int i = 1; i <= 12; ++i) list += fmt::format("color0/{0}.ppm,$1\ncolor3/{0}.ppm,$10\n", i);
  desk_.write("prices.csv", list);
  const std::string train =
      "train --net tiny.prototxt --adapt-classes --epochs 8 --lr 0.02 "
      "--threads 1 --data prices.csv --out run";
  for (const std::string& command :
       {std::string("data prices.csv"), train, std::string("pack prices.csv --out prices.pack")}) {
    EXPECT_THAT(desk_.refusal(command),
                AllOf(HasSubstr("has '$1' and the like, as numbers to predict"),
                      HasSubstr("--task labels takes each as the name of a class")));
    const Outcome outcome = desk_.tandem(command + " --task labels");
    EXPECT_EQ(outcome.code, 0) << outcome.errors;
  }
  EXPECT_EQ(tested("--run run").at("images"), 4);
  EXPECT_EQ(predicted("--run run color3/1.ppm")[0].at("scores")[0].at("class"), "$10");
}

TEST_F(SeveralLabels, InOneColumnAreTheSameLabels) {
  ASSERT_EQ(train("tags", "--epochs 20").code, 0);
  EXPECT_EQ(desk_.read("tags/classes.txt"), "bright\nred\n");
  EXPECT_GT(tested("--run tags").at("metrics").at("mAP"), 0.9);
  // The columns are found by their headings; they are the same images, of which 10 were held out.
  EXPECT_EQ(tested("--run tags --data labels.csv").at("images"), 10);
}

TEST_F(SeveralLabels, NumbersAreLearnedInTheirOwnUnits) {
  const Outcome trained = train("numbers", "--epochs 40");
  ASSERT_EQ(trained.code, 0) << trained.errors;
  EXPECT_THAT(trained.output, AllOf(HasSubstr("task regression"), HasSubstr("(value - mean)"),
                                    HasSubstr(" MAE "), HasSubstr(" R2 ")));
  const json test = tested("--run numbers");
  EXPECT_GT(test.at("metrics").at("R2"), 0.7);
  const json prediction = predicted("--run numbers color3/1.ppm")[0].at("scores");
  EXPECT_EQ(prediction[0].at("name"), "amount");
  EXPECT_NEAR(prediction[0].at("value"), 240, 60);
  const Outcome huber = desk_.tandem(
      "train --net tiny.prototxt --adapt-classes --data numbers.csv --loss huber --steps 2 --out "
      "h");
  EXPECT_THAT(huber.output, HasSubstr("HuberLoss instead of SoftmaxWithLoss"));
}

TEST_F(SeveralLabels, InterruptedRunsGoOnWithTheSameBits) {
  for (const std::string name : {"labels", "numbers"}) {
    ASSERT_EQ(train(name, "--steps 20").code, 0);
    const std::string whole = checkpoint(desk_, name);
    const std::string part = fmt::format(
        "train --net tiny.prototxt --adapt-classes --data {}.csv --threads 1 --lr 0.02 "
        "--batch 8 --seed 3 --out part-{} --steps ",
        name, name);
    ASSERT_EQ(desk_.tandem(part + "10").code, 0);
    ASSERT_EQ(desk_.tandem(fmt::format("train --out part-{} --resume --steps 20", name)).code, 0);
    EXPECT_EQ(checkpoint(desk_, "part-" + name), whole);
  }
}

TEST_F(SeveralLabels, EveryStrategyAndRanksTrainThem) {
  const auto command = [](const std::string& name, const std::string& options) {
    return fmt::format(
        "train --net tiny.prototxt --adapt-classes --data {0}.csv --threads 1 --batch 8 --steps 6 "
        "--seed 3 --out {0}-{1}",
        name, options);
  };
  for (const std::string name : {"labels", "numbers"}) {
    for (const std::string strategy :
         {"sequential", "two_phase", "layerwise", "hybrid", "asymmetric", "fc_parallel", "mixed"}) {
      // It divides neurons, of which there is one.
      if (name == "numbers" && strategy == "fc_parallel") continue;
      const Outcome outcome =
          desk_.tandem(command(name, strategy) + " --devices cpu:2 --strategy " + strategy);
      EXPECT_EQ(outcome.code, 0) << strategy << outcome.errors;
      EXPECT_EQ(tested(fmt::format("--run {}-{}", name, strategy)).at("skipped"), 0);
    }
    if (!test::no_mpi().empty()) continue;
    const Outcome ranks =
        desk_.tandem(command(name, "ranks") + " --strategy two_phase", test::mpirun(2));
    ASSERT_EQ(ranks.code, 0) << ranks.errors;
    const std::string devices = fmt::format("{}-{}", name, "two_phase");
    EXPECT_EQ(checkpoint(desk_, name + "-ranks"), checkpoint(desk_, devices));
  }
}

TEST_F(SeveralLabels, PacksKeepThem) {
  for (const std::string name : {"labels", "numbers"}) {
    ASSERT_EQ(desk_.tandem(fmt::format("pack {0}.csv --out {0}.pack", name)).code, 0);
    const Outcome from_list = desk_.tandem(fmt::format("data {}.csv --json", name));
    const Outcome from_pack = desk_.tandem(fmt::format("data {}.pack --json", name));
    const json list = json::parse(from_list.output), pack = json::parse(from_pack.output);
    EXPECT_EQ(pack.at("task"), list.at("task"));
    EXPECT_EQ(pack.at("classes"), list.at("classes"));
    EXPECT_EQ(pack.at("splits")[0].at("class_counts"), list.at("splits")[0].at("class_counts"));
    const json ranges = list.at("splits")[0].at("ranges");
    for (size_t i = 0; i < ranges.size(); ++i) {
      EXPECT_EQ(pack.at("splits")[0].at("ranges")[i].at("most"), ranges[i].at("most"));
    }
    const Outcome trained = desk_.tandem(
        fmt::format("train --net tiny.prototxt --adapt-classes --data {}.pack --steps 2 --out p-{}",
                    name, name));
    EXPECT_EQ(trained.code, 0) << trained.errors;
  }
  EXPECT_THAT(desk_.tandem("data labels.csv").output, HasSubstr("(image_list): 2 labels"));
  EXPECT_THAT(desk_.tandem("data numbers.csv").output, HasSubstr("amount (train): 10 to 240"));
}

TEST_F(SeveralLabels, OnnxModelsGiveProbabilitiesOrNumbers) {
  ASSERT_EQ(train("labels", "--steps 2").code, 0);
  ASSERT_EQ(train("numbers", "--steps 2").code, 0);
  EXPECT_EQ(desk_.tandem("export --run labels labels.onnx --softmax").code, 0);
  EXPECT_THAT(desk_.read("labels.onnx"), AllOf(HasSubstr("Sigmoid"), HasSubstr("multilabel")));
  EXPECT_EQ(desk_.tandem("export --run numbers numbers.onnx").code, 0);
  EXPECT_THAT(desk_.read("numbers.onnx"), AllOf(HasSubstr("deviations"), HasSubstr("regression")));
  EXPECT_THAT(desk_.refusal("export --run numbers other.onnx --softmax"),
              HasSubstr("no probabilities"));
}

TEST_F(SeveralLabels, AnOnnxModelThatIsReadAgainPredictsTheSameLabelsOrNumbers) {
  for (const std::string list : {"labels", "numbers"}) {
    ASSERT_EQ(train(list, "--steps 3").code, 0);
    const std::string softmax = list == "labels" ? " --softmax" : "";
    const Outcome outcome = desk_.tandem("export --run " + list + " m.onnx --overwrite" + softmax);
    EXPECT_THAT(outcome.output, HasSubstr("verified by reading it again")) << outcome.errors;
    const Outcome read = desk_.tandem("import m.onnx --out again_" + list);
    EXPECT_EQ(read.code, 0) << read.errors;
    const std::string pictures = " color0/1.ppm color1/1.ppm color3/1.ppm";
    const json again = predicted("--run again_" + list + pictures);
    const json right = predicted("--run " + list + pictures);
    for (size_t i = 0; i < right.size(); ++i) {
      const json &ours = again[i]["scores"], &theirs = right[i]["scores"];
      ASSERT_EQ(ours.size(), theirs.size());
      const bool are_labels = list == "labels";
      const char *name = are_labels ? "class" : "name",
                 *field = are_labels ? "probability" : "value";
      for (size_t k = 0; k < theirs.size(); ++k) {
        EXPECT_EQ(ours[k].at(name), theirs[k].at(name));
        const double value = theirs[k].at(field);  // the file has units in float32
        EXPECT_NEAR(double(ours[k].at(field)), value, 1e-6 * std::abs(value));
      }
    }
  }
}

TEST_F(SeveralLabels, OptionsForClassesAreRefused) {
  const std::string labels = "train --net tiny.prototxt --data labels.csv --steps 1 ";
  EXPECT_THAT(desk_.refusal(labels + "--balance"), HasSubstr("--balance: is for classes"));
  EXPECT_THAT(desk_.refusal(labels + "--class-weights 1,2"), HasSubstr("--class-weights: is for"));
  EXPECT_THAT(desk_.refusal(labels + "--loss huber"), HasSubstr("--loss huber: is for numbers"));
  desk_.draw_two_classes("images");
  EXPECT_THAT(desk_.refusal("train --net tiny.prototxt --data images --task multilabel --steps 1"),
              HasSubstr("--task multilabel"));
  ASSERT_EQ(train("labels", "--steps 1").code, 0);
  EXPECT_THAT(desk_.refusal("test --run labels --data images"),
              HasSubstr("is unknown to training; known classes: red, bright"));
  EXPECT_THAT(desk_.refusal("predict --run labels --explain why color0/1.ppm"),
              HasSubstr("has learned labels"));
}

TEST_F(SeveralLabels, ThatAreAlikeForAllImagesAreRefused) {
  desk_.write("alike.txt", "color0/1.ppm 1 0 1\ncolor0/2.ppm 1 0 1\ncolor1/1.ppm 1 0 1\n");
  EXPECT_THAT(desk_.refusal("train --net tiny.prototxt --adapt-classes --data alike.txt --steps 1"),
              HasSubstr("have the same labels (0 1, 1 0, 2 1)"));
  desk_.write("partly.txt",
              "color0/1.ppm 1 0\ncolor0/2.ppm 1 1\ncolor1/1.ppm 1 0\ncolor1/2.ppm 1 1\n");
  EXPECT_THAT(desk_
                  .tandem("train --net tiny.prototxt --data partly.txt --steps 1 --batch 1 "
                          "--data-option val_fraction=0")
                  .output,
              HasSubstr("the same labels (0 1): nothing about these"));
}

TEST_F(SeveralLabels, FoldsHoldOutEveryImageOnce) {
  const Outcome folds = train("labels", "--kfold 3 --epochs 2");
  ASSERT_EQ(folds.code, 0) << folds.errors;
  EXPECT_THAT(folds.output, AllOf(HasSubstr("fold 3 of 3"), HasSubstr("3 folds"),
                                  HasSubstr(" mAP "), HasSubstr("+-")));
  std::string held;
  for (int fold = 1; fold <= 3; ++fold) {
    const std::string split = desk_.read(fmt::format("labels/fold-{}/split.csv", fold));
    size_t count = 0;
    for (size_t at = split.find(",val,"); at != std::string::npos;
         at = split.find(",val,", at + 1)) {
      ++count;
    }
    EXPECT_EQ(count, 16U);
    held += split;
  }
  for (int i = 0; i < 4; ++i) {
    for (int k = 1; k <= 12; ++k) {
      const std::string image = fmt::format("color{}/{}.ppm,val,", i, k);
      EXPECT_NE(held.find(image), std::string::npos) << image;
      EXPECT_EQ(held.find(image), held.rfind(image)) << image;
    }
  }
  EXPECT_THAT(desk_.read("labels/kfold.csv"), AllOf(HasSubstr("fold,step,mAP,F1,loss"),
                                                    HasSubstr("mean,"), HasSubstr("deviation,")));
  EXPECT_EQ(test::page_data(desk_.read("labels/kfold.html")).at("runs").size(), 3U);
  EXPECT_THAT(train("labels", "--kfold 3 --resume").output, HasSubstr("fold 3 of 3 is complete"));
}

TEST_F(SeveralLabels, FoldsGoOnWithTheOptionsThatTheyWereBegunWith) {
  ASSERT_EQ(train("labels", "--steps 2").code, 0);
  const std::string folds =
      "train --data labels.csv --weights labels --data-option scale=0.02 --solver-option "
      "momentum=0.8 --kfold 2 --batch 8 --snapshot 1 --steps 60 --out folds";
  {
    test::RunningProgram program(desk_, folds + " --test-delays 3 --test-delay-ms 3");
    ASSERT_TRUE(program.wait_for_file(desk_ / "folds/fold-1/last.safetensors"));
    ASSERT_EQ(program.stop(SIGINT).code, 130);
  }
  const Outcome rest = desk_.tandem(folds + " --resume");
  EXPECT_EQ(rest.code, 0) << rest.errors;
  EXPECT_THAT(rest.output, HasSubstr("2 folds"));
}

TEST_F(SeveralLabels, FoldsThatCannotBeAreRefusedBeforeTheFirstIsTrained) {
  EXPECT_THAT(train("labels", "--kfold 100 --epochs 2").errors,
              AllOf(HasSubstr("fold 100 cannot hold out an image"), Not(HasSubstr("fold 1 of"))));
  desk_.draw_two_classes("images");
  const Outcome split =
      desk_.tandem("train --net tiny.prototxt --data images --kfold 3 --steps 2 --out folds");
  EXPECT_THAT(split.errors, HasSubstr("validation images of their own"));
  EXPECT_FALSE(std::filesystem::exists(desk_ / "folds"));
  EXPECT_THAT(desk_.refusal("train --net tiny.prototxt --data labels.csv --steps 1 --data-option "
                            "fold=1/3 --data-option val_fraction=0"),
              HasSubstr("give one of them"));
}

TEST_F(SeveralLabels, ARunIsNoCrossValidationToGoOnWith) {
  ASSERT_EQ(train("labels", "--steps 1").code, 0);
  EXPECT_THAT(train("labels", "--kfold 3 --resume").errors,
              HasSubstr("is the folder of one run, not of a cross-validation"));
}

TEST_F(SeveralLabels, TenViewsGiveTheMeanOfTheirScores) {
  desk_.draw_two_classes("images");
  ASSERT_EQ(desk_.tandem("train --net tiny.prototxt --data images --steps 2 --out run").code, 0);
  const json one = tested("--run run"), ten = tested("--run run --tta");
  EXPECT_EQ(one.at("images"), ten.at("images"));
  // Pictures of one color have one color in every view, but for their noise.
  EXPECT_NEAR(one.at("loss").get<double>(), ten.at("loss").get<double>(), 0.1);
  EXPECT_NE(one.at("loss"), ten.at("loss"));
  const json views = predicted("--run run --tta images/val/red/1.ppm");
  EXPECT_EQ(views[0].at("scores").size(), 2U);
  EXPECT_NE(views, predicted("--run run images/val/red/1.ppm"));
}

}  // namespace
}  // namespace tandem
