// Nets of one output and SigmoidCrossEntropyLoss on two classes, as is usual in Caffe: all that is
// done with other nets of classes.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "core/base/text/strings.h"
#include "tests/cli/program.h"

namespace tandem {
namespace {

using nlohmann::json;
using test::Desk;
using test::Outcome;
using test::replaced;
using test::tiny_net;
using testing::AllOf;
using testing::HasSubstr;

class TwoScores : public testing::Test {
 protected:
  TwoScores() {
    desk_.draw_two_classes("photos");
    desk_.write("one.prototxt", replaced(replaced(tiny_net(), "num_output: 2", "num_output: 1"),
                                         "SoftmaxWithLoss", "SigmoidCrossEntropyLoss"));
  }
  Outcome train(const std::string& data, const std::string& options) const {
    return desk_.tandem(
        "train --net one.prototxt --threads 1 --lr 0.02 --batch 8 --seed 3 --data " + data + " " +
        options);
  }
  [[nodiscard]] json json_of(const std::string& arguments) const {
    const Outcome outcome = desk_.tandem(arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.errors;
    return json::parse(outcome.output);
  }
  // A column of a run's metrics.csv, without empty cells.
  [[nodiscard]] std::vector<double> metrics(const std::string& run, const std::string& name) const {
    std::istringstream lines(desk_.read(run + "/metrics.csv"));
    std::vector<double> values;
    size_t column = std::string::npos;
    for (std::string line; std::getline(lines, line);) {
      const std::vector<std::string> cells = split(line, ',');
      if (column == std::string::npos) {
        column = static_cast<size_t>(std::find(cells.begin(), cells.end(), name) - cells.begin());
      } else if (column < cells.size() && !cells[column].empty()) {
        values.push_back(std::stod(cells[column]));
      }
    }
    return values;
  }

  Desk desk_;
};

TEST_F(TwoScores, AreTrainedTestedPredictedAndExported) {
  const Outcome trained = train("photos", "--epochs 12 --out run");
  ASSERT_EQ(trained.code, 0) << trained.errors;
  EXPECT_THAT(trained.output,
              AllOf(HasSubstr("the net's only output, whose loss is "
                              "SigmoidCrossEntropyLoss, tells class 'red' (label 1) "
                              "from 'blue'"),
                    testing::Not(HasSubstr("note: layer"))));
  const json test = json_of("test --json --no-report --run run");
  EXPECT_GT(test.at("top1"), 0.95);
  for (const std::string name : {"red", "blue"}) {
    const json scores =
        json_of("predict --json --run run photos/val/" + name + "/1.ppm")[0].at("scores");
    ASSERT_EQ(scores.size(), 2U) << scores;
    EXPECT_EQ(scores[0].at("class"), name);
    EXPECT_NEAR(
        scores[0].at("probability").get<double>() + scores[1].at("probability").get<double>(), 1,
        1e-6);
  }
  EXPECT_EQ(desk_.tandem("export --run run --softmax run.onnx").code, 0);
  EXPECT_THAT(desk_.read("run/classes.txt"), HasSubstr("blue\nred\n"));
  EXPECT_EQ(desk_.tandem("train --out run --resume --epochs 13").code, 0);
}

// The loss that is replaced is that of one label of several.
TEST_F(TwoScores, HaveTheLossOfTheOneOutput) {
  std::string list = "path,red\n";
  for (const auto& [name, label] : {std::pair("blue", 0), {"red", 1}}) {
    for (int i = 1; i <= 6; ++i) list += fmt::format("photos/train/{}/{}.ppm,{}\n", name, i, label);
  }
  desk_.write("list.csv", list);
  const std::string options = "--data-option val_fraction=0 --steps 12 --display 1 --out ";
  ASSERT_EQ(train("list.csv", options + "classes").code, 0);
  ASSERT_EQ(train("list.csv", options + "labels --task multilabel").code, 0);
  const std::vector<double> one = metrics("labels", "loss"), two = metrics("classes", "loss");
  ASSERT_EQ(one.size(), two.size());
  ASSERT_GE(one.size(), 12U);
  for (size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(two[i], one[i], 1e-4) << i;
  const std::string predict = "predict --json --threshold 0 --run labels photos/val/red/1.ppm";
  const double label = json_of(predict)[0].at("scores")[0].at("probability");
  const json scores = json_of("predict --json --run classes photos/val/red/1.ppm")[0].at("scores");
  const size_t red = scores[0].at("class") == "1" ? 0 : 1;
  EXPECT_NEAR(scores[red].at("probability"), label, 1e-4);
}

TEST_F(TwoScores, KeepTheirWeightsForCaffe) {
  ASSERT_EQ(train("photos", "--steps 2 --out run").code, 0);
  ASSERT_EQ(desk_.tandem("export --run run w.caffemodel").code, 0);
  const Outcome again = train("photos", "--steps 1 --weights w.caffemodel --out again");
  EXPECT_EQ(again.code, 0) << again.errors;
  EXPECT_THAT(again.output, testing::Not(HasSubstr("not in it, so with initial values")));
}

TEST_F(TwoScores, AreForTwoClasses) {
  desk_.draw("three/a", 3, 200, 0, 0);
  desk_.draw("three/b", 3, 0, 200, 0);
  desk_.draw("three/c", 3, 0, 0, 200);
  EXPECT_THAT(desk_.refusal("train --net one.prototxt --data three --out run --steps 2"),
              AllOf(HasSubstr("SigmoidCrossEntropyLoss"), HasSubstr("type: \"SoftmaxWithLoss\""),
                    HasSubstr("num_output: 3"), HasSubstr("one.prototxt:")));
}

}  // namespace
}  // namespace tandem
