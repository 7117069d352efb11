// What a run chooses by itself, and what it says of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace tandem {
namespace {

using nlohmann::json;
using test::Desk;
using test::Outcome;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(Recipe, AFolderAloneIsEnoughAndEveryChoiceIsNamed) {
  const Desk desk;
  desk.draw_two_classes("images");
  const Outcome outcome = desk.tandem("train --data images --epochs 2 --out run");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(
      outcome.output,
      AllOf(HasSubstr("model resnet18 (--model"),
            HasSubstr("image size 24, for images whose shorter side is 10 at the median "
                      "(--image-size)"),
            HasSubstr("batch 8 (--batch), 3 steps (--epochs, --steps), augmentation light"),
            HasSubstr("recipe photos (--recipe plain|photos|caffe|finetune): Nesterov"),
            HasSubstr("it begins with random weights; trained ones usually give more "
                      "accuracy in fewer epochs: 'tandem fetch timm/resnet18.a1_in1k', then "
                      "--weights timm/resnet18.a1_in1k")));
  EXPECT_THAT(desk.read("run/report.html"),
              HasSubstr("'tandem train --data images --weights timm/resnet18.a1_in1k'"));
  const json record = json::parse(desk.read("run/run.json"));
  EXPECT_EQ(record.at("data_shape"), json({3, 24, 24}));
  EXPECT_EQ(record.at("options").at("recipe"), "photos");
  EXPECT_EQ(record.at("data_parameters").at("pad"), "3");
  EXPECT_THAT(desk.read("run/solver.prototxt"), HasSubstr("cosine"));
  EXPECT_EQ(desk.tandem("train --resume --out run --epochs 3").code, 0);
  EXPECT_EQ(desk.tandem("test --run run --data images").code, 0);
}

TEST(Recipe, WhatIsGivenIsKept) {
  const Desk desk;
  desk.draw_two_classes("images");
  const Outcome outcome = desk.tandem(
      "train --data images --model resnet18 --image-size 32 --augment none --batch 4 --lr 0.02 "
      "--solver-type SGD --solver-option weight_decay=0.25 --data-option mirror=true --steps 1 "
      "--out run");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, AllOf(Not(HasSubstr("model resnet18")), Not(HasSubstr("image size")),
                                    HasSubstr("SGD (--solver-type), rate 0.02 (--lr)")));
  const json record = json::parse(desk.read("run/run.json"));
  EXPECT_EQ(record.at("data_shape"), json({3, 32, 32}));
  EXPECT_EQ(record.at("data_parameters").at("mirror"), "true");
  EXPECT_EQ(record.at("data_parameters").at("resize"), "32");
  EXPECT_THAT(desk.read("run/solver.prototxt"),
              AllOf(HasSubstr("weight_decay: 0.25"), HasSubstr("base_lr: 0.02")));
}

TEST(Recipe, AModelWithoutBatchNormKeepsItsOwnSolver) {
  const Desk desk;
  desk.draw_two_classes("images");
  const Outcome outcome =
      desk.tandem("train --data images --net cifar10_quick --steps 1 --out run");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_EQ(json::parse(desk.read("run/run.json")).at("options").at("recipe"), "caffe");
  EXPECT_THAT(desk.read("run/solver.prototxt"), HasSubstr("base_lr: 0.001"));
}

TEST(Recipe, PlainHasARateThatNeverChangesAndNoAugmentation) {
  const Desk desk;
  desk.draw_two_classes("images");
  const Outcome outcome =
      desk.tandem("train --data images --net cifar10_quick --recipe plain --steps 1 --out run");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(desk.read("run/solver.prototxt"), Not(HasSubstr("cosine")));
  EXPECT_EQ(json::parse(desk.read("run/run.json")).at("data_parameters").at("mirror"), "false");
}

TEST(Recipe, WrongWordsAreRefused) {
  const Desk desk;
  desk.draw_two_classes("images");
  desk.write("solver.prototxt", "net: 'tiny.prototxt' base_lr: 0.01 max_iter: 3");
  const std::string train = "train --data images --net tiny.prototxt ";
  EXPECT_THAT(
      desk.refusal(train + "--recipe photo"),
      HasSubstr(
          "--recipe photo: there are plain, photos, caffe, finetune (did you mean 'photos'?)"));
  EXPECT_THAT(desk.refusal(train + "--augment lihgt"), HasSubstr("(did you mean 'light'?)"));
  EXPECT_THAT(desk.refusal(train + "--label-smoothing 1"),
              HasSubstr("--label-smoothing 1: a share of at least 0 and below 1"));
  EXPECT_THAT(desk.refusal("train --data images --solver solver.prototxt --recipe photos"),
              HasSubstr("the solver file has rates of its own"));
}

TEST(Models, AreListedWithWhatTheyCost) {
  const Desk desk;
  desk.make_folder("models");
  desk.write("models/mine.prototxt", test::tiny_net());
  const std::string path = "TANDEM_MODEL_PATH=models";
  const Outcome outcome = desk.tandem("models --json", path);
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  bool has_resnet = false, has_mine = false;
  for (const json& model : json::parse(outcome.output)) {
    if (model.at("model") == "resnet18") {
      has_resnet = true;
      EXPECT_EQ(model.at("height"), 224);
      EXPECT_NEAR(model.at("weights").get<double>(), 11.7e6, 0.1e6);
      EXPECT_NEAR(model.at("forward_flops").get<double>(), 3.6e9, 0.2e9);
      EXPECT_GT(model.at("training_bytes").get<int64_t>(), 100 << 20);
    }
    if (model.at("model") == "mine") {
      has_mine = true;
      EXPECT_EQ(model.at("weights"), 4 * 27 + 4 + 2 * 144 + 2);
    }
  }
  EXPECT_TRUE(has_resnet);
  EXPECT_TRUE(has_mine);
  EXPECT_THAT(desk.tandem("models", path).output,
              AllOf(HasSubstr("squeezenet"), HasSubstr("--measure adds")));
}

TEST(LongRun, SaysBeforeItsFirstStepThatItTakesDays) {
  const Desk desk;
  const std::string train = "train --data synthetic --data-option size=40 --net tiny.prototxt ";
  test::RunningProgram program(desk, train + "--steps 100000000000000 --snapshot 1 --out run");
  ASSERT_TRUE(program.wait_for_file(desk / "run/last.safetensors"));
  EXPECT_EQ(program.stop(SIGINT).code, 130);
  EXPECT_THAT(
      desk.read("run/log.txt"),
      testing::ContainsRegex("the run will take about [^ ]+ days: 100000000000000 steps of"));
  EXPECT_THAT(desk.tandem(train + "--steps 3 --out short").output, Not(HasSubstr("the run will")));
}

TEST(Patience, EndsARunThatNoLongerGetsBetter) {
  const Desk desk;
  desk.draw_two_classes("images");
  const Outcome ended = desk.tandem(
      "train --data images --net tiny.prototxt --lr 0 --epochs 9 --patience 2 --out run");
  EXPECT_EQ(ended.code, 0) << ended.errors;
  EXPECT_THAT(ended.output,
              AllOf(HasSubstr("ended after step 9: 2 evaluations were not better than "
                              "that of step 3 (--patience)"),
                    HasSubstr("9 steps in ")));
  const Outcome resumed = desk.tandem("train --resume --out run --patience 4");
  EXPECT_EQ(resumed.code, 0) << resumed.errors;
  EXPECT_THAT(resumed.output, HasSubstr("ended after step 15: 4 evaluations were not better than "
                                        "that of step 3"));
}

TEST(Recipe, ARunsOwnNetHasTheBatchOfThatRun) {
  const Desk desk;
  desk.draw_two_classes("images");
  const std::string train = "train --data images --steps 1 ";
  ASSERT_EQ(desk.tandem(train + "--net tiny.prototxt --batch 3 --out run").code, 0);
  const Outcome again = desk.tandem(train + "--net run/net.prototxt --out again");
  ASSERT_EQ(again.code, 0) << again.errors;
  EXPECT_THAT(again.output, HasSubstr("batch 3, of the run in whose folder the net is"));
  EXPECT_EQ(json::parse(desk.read("again/run.json")).at("options").at("batch"), 3);
  ASSERT_EQ(desk.tandem(train + "--net run/net.prototxt --batch 5 --out other").code, 0);
  EXPECT_EQ(json::parse(desk.read("other/run.json")).at("options").at("batch"), 5);
  ASSERT_EQ(desk.tandem(train + "--weights run --out tuned").code, 0);
  EXPECT_EQ(json::parse(desk.read("tuned/run.json")).at("options").at("batch"), 3);
}

TEST(LabelSmoothing, GivesTheSameWeightsOnTwoDevicesAndWhenResumed) {
  const Desk desk;
  desk.draw_two_classes("images");
  const std::string train =
      "train --data images --net tiny.prototxt --lr 0.01 --label-smoothing 0.2 --seed 3 ";
  ASSERT_EQ(desk.tandem(train + "--steps 6 --out whole").code, 0);
  ASSERT_EQ(desk.tandem(train + "--steps 4 --out parts").code, 0);
  ASSERT_EQ(desk.tandem("train --resume --out parts --steps 6").code, 0);
  EXPECT_EQ(desk.read("whole/last.safetensors").size(), desk.read("parts/last.safetensors").size());
  const auto loss = [&](const std::string& run) {
    const Outcome tested = desk.tandem("test --json --weights last --data images --run " + run);
    EXPECT_EQ(tested.code, 0) << tested.errors;
    return json::parse(tested.output).at("loss").get<double>();
  };
  EXPECT_EQ(loss("whole"), loss("parts"));
  EXPECT_THAT(desk.refusal("train --resume --out parts --steps 9 --label-smoothing 0.3"),
              HasSubstr("--label-smoothing cannot change"));
  ASSERT_EQ(desk.tandem(train + "--steps 6 --devices cpu:2 --out two").code, 0);
  EXPECT_NEAR(loss("whole"), loss("two"), 1e-5);
}

}  // namespace
}  // namespace tandem
