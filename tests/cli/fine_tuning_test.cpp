// Fine-tuning as a user does: what is told, what is kept, what is refused; and the rate to begin
// with.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

constexpr const char* tuned =
    "train --data images --net tiny.prototxt --weights first/last.safetensors --steps 2 ";

class FineTuningCommand : public testing::Test {
 protected:
  FineTuningCommand() {
    desk_.draw_two_classes("images");
    const Outcome first =
        desk_.tandem("train --data images --net tiny.prototxt --steps 2 --out first");
    EXPECT_EQ(first.code, 0) << first.errors;
  }
  Desk desk_;
};

TEST_F(FineTuningCommand, LayersBeforeTheLastLearnSlowerByTheirDepth) {
  const Outcome outcome = desk_.tandem(std::string(tuned) + "--layer-decay 0.25 --out run");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output,
              HasSubstr("score learns at the whole rate, each layer before it at 0.25 of the next, "
                        "the first at 0.25 (--layer-decay)"));
  EXPECT_THAT(desk_.read("run/net.prototxt"), HasSubstr("lr_mult: 0.25"));
  EXPECT_THAT(desk_.read("run/untuned_net.prototxt"), Not(HasSubstr("lr_mult: 0.25")));
  EXPECT_THAT(desk_.refusal("train --resume --out run --steps 5 --layer-decay 0.5"),
              HasSubstr("--layer-decay cannot change"));
  for (const char* factor : {"0", "1.5", "-1", "nan"}) {
    EXPECT_THAT(desk_.refusal(std::string(tuned) + "--out other --layer-decay " + factor),
                HasSubstr("--layer-decay"));
  }
}

TEST_F(FineTuningCommand, WhatIsFrozenIsToldAndKept) {
  const Outcome outcome =
      desk_.tandem(std::string(tuned) + "--freeze 'conv*' --head-lr 10 --out run");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("1 of 2 layers are frozen (--freeze, --freeze-bn)"),
                                    HasSubstr("the backward pass ends at layer 'score'"),
                                    HasSubstr("score learns at 10 times the rate (--head-lr)")));
  const json record = json::parse(desk_.read("run/run.json"));
  EXPECT_EQ(record.at("options").at("freeze"), json({"conv*"}));
  EXPECT_EQ(record.at("options").at("head_lr"), 10);
  EXPECT_THAT(desk_.read("run/net.prototxt"),
              AllOf(HasSubstr("lr_mult: 0"), HasSubstr("lr_mult: 10")));
  EXPECT_EQ(desk_.tandem("train --resume --out run --steps 4").code, 0);
  EXPECT_THAT(desk_.refusal("train --resume --out run --steps 5 --freeze score"),
              HasSubstr("--freeze cannot change"));
}

// A net with a class more than the weights', of which "score" is new.
class NewClass : public FineTuningCommand {
 protected:
  NewClass() {
    desk_.draw_two_classes("three");
    desk_.draw("three/train/green", 6, 20, 200, 20);
    desk_.draw("three/val/green", 2, 20, 200, 20);
  }
};

TEST_F(NewClass, TrainedWeightsAreFineTunedByDefaultAndEveryChoiceIsNamed) {
  const Outcome outcome = desk_.tandem("train --data three --weights first --out run");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output,
              AllOf(HasSubstr("score_3 learns at 10 times the rate (--head-lr)"),
                    HasSubstr("10 epochs (--epochs, --steps)"),
                    HasSubstr("recipe finetune (--recipe plain|photos|caffe|finetune): Nesterov "
                              "(--solver-type), rate 7.81"),
                    HasSubstr("only score_3 learns until step 5, then all layers do "
                              "(--unfreeze-after 1)"),
                    HasSubstr(", when all layers learn"),
                    HasSubstr("after step 5 all layers learn (--unfreeze-after)")));
  const json record = json::parse(desk_.read("run/run.json"));
  EXPECT_EQ(record.at("head"), json({"score_3"}));
  EXPECT_EQ(record.at("options").at("unfreeze_after"), 1);
  EXPECT_THAT(desk_.read("run/report.html"),
              HasSubstr("Until step 5 (epoch 1) only score_3 learns, then all layers."));
  EXPECT_THAT(desk_.read("run/net.prototxt"), Not(HasSubstr("lr_mult: 0\n")));
  EXPECT_THAT(desk_.refusal("train --resume --out run --epochs 12 --unfreeze-after 2"),
              HasSubstr("--unfreeze-after cannot change"));
  EXPECT_EQ(desk_.tandem("train --resume --out run --epochs 11").code, 0);
}

TEST_F(NewClass, WhatIsGivenIsTakenInPlaceOfTheRecipes) {
  const Outcome outcome = desk_.tandem(
      "train --data three --weights first --head-lr 1 --unfreeze-after 0 --lr 0.5 --epochs 3 "
      "--solver-type SGD --out run");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, AllOf(Not(HasSubstr("times the rate")), Not(HasSubstr("all layers")),
                                    HasSubstr("SGD (--solver-type), rate 0.5 (--lr)")));
  EXPECT_FALSE(json::parse(desk_.read("run/run.json")).contains("head"));
  const Outcome half =
      desk_.tandem("train --data three --weights first --unfreeze-after 0.5 --epochs 2 --out half");
  ASSERT_EQ(half.code, 0) << half.errors;
  EXPECT_THAT(half.output, HasSubstr("after step 3 all layers learn"));
  EXPECT_THAT(
      desk_.tandem("train --data three --weights first --recipe caffe --steps 2 --out c").output,
      Not(HasSubstr("finetune")));
}

TEST_F(NewClass, AShortRunLearnsWithAllLayersFromTheFirstStepOn) {
  const Outcome outcome = desk_.tandem("train --data three --weights first --epochs 2 --out run");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, Not(HasSubstr("all layers")));
}

TEST_F(NewClass, ThreeEpochsAreEnoughForAFirstOneOfTheNewLayersWhateverTheBatch) {
  const Outcome outcome =
      desk_.tandem("train --data three --weights first --epochs 3 --batch 5 --out run");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("11 steps"), HasSubstr("until step 4, then all")));
}

TEST_F(NewClass, PatienceBeginsWhenAllLayersLearn) {
  const Outcome outcome = desk_.tandem(
      "train --data three --weights first --epochs 9 --unfreeze-after 4 --lr 0 --patience 1 "
      "--out run");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("after step 18 all layers learn"),
                                    HasSubstr("1 evaluation was not better than that of step ")));
}

TEST_F(NewClass, ARunOfTrainedWeightsDoesNotGoOnFromScratch) {
  const std::string resume = "train --resume --out run --steps 3 --from-scratch";
  ASSERT_EQ(desk_.tandem("train --data three --weights first --steps 2 --out run").code, 0);
  EXPECT_THAT(desk_.refusal(resume), HasSubstr("--from-scratch cannot change"));
  ASSERT_EQ(desk_
                .tandem("train --data three --net tiny.prototxt --adapt-classes --from-scratch "
                        "--steps 2 --out other")
                .code,
            0);
  EXPECT_EQ(desk_.tandem(test::replaced(resume, "run", "other")).code, 0);
}

TEST_F(FineTuningCommand, TheRecipeOfTrainedWeightsNeedsThem) {
  EXPECT_THAT(desk_.refusal("train --data images --net tiny.prototxt --recipe finetune"),
              HasSubstr("--recipe finetune begins with trained weights: give --weights PATH"));
}

TEST_F(FineTuningCommand, TheStateOfAnOptimizerInPlaceOfWeightsNamesTheWeights) {
  EXPECT_THAT(desk_.refusal("train --data images --net tiny.prototxt --out run --weights "
                            "first/last.state.safetensors"),
              HasSubstr("weight file 'first/last.state.safetensors' holds the state of a run's "
                        "optimizer and no weights: those are in 'first/last.safetensors'"));
}

TEST_F(FineTuningCommand, NamesThatNoLayerHasAreRefused) {
  EXPECT_THAT(desk_.refusal(std::string(tuned) + "--freeze conv9 --out run"),
              AllOf(HasSubstr("--freeze conv9"), HasSubstr("conv1, score")));
  EXPECT_THAT(desk_.refusal(std::string(tuned) + "--freeze '*' --out run"),
              HasSubstr("leave out the last one, 'score'"));
  EXPECT_THAT(desk_.refusal("train --data images --net tiny.prototxt --freeze conv1"),
              HasSubstr("give --weights PATH"));
}

TEST_F(FineTuningCommand, APlanOfTheFrozenNetIsShorterAndSmaller) {
  ASSERT_EQ(desk_.tandem(std::string(tuned) + "--freeze 'conv*' --out run").code, 0);
  const auto plan = [this](const std::string& net) {
    const Outcome outcome =
        desk_.tandem("plan --json --strategy two_phase --image-size 8 --net " + net);
    EXPECT_EQ(outcome.code, 0) << outcome.errors;
    return json::parse(outcome.output);
  };
  const json whole = plan("first/net.prototxt"), frozen = plan("run/net.prototxt");
  EXPECT_LT(frozen.at("tasks").size(), whole.at("tasks").size());
  EXPECT_LT(frozen.at("predicted_step_seconds"), whole.at("predicted_step_seconds"));
  EXPECT_LT(frozen.at("memory_bytes")[0], whole.at("memory_bytes")[0]);
}

TEST_F(FineTuningCommand, TheAverageIsRecordedAndKeptAsTheBest) {
  const Outcome outcome =
      desk_.tandem("train --data images --net tiny.prototxt --steps 4 --ema 0.9 --out run");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr("averaged with decay 0.9 (--ema)"));
  EXPECT_EQ(json::parse(desk_.read("run/run.json")).at("options").at("ema"), 0.9);
  EXPECT_NE(desk_.read("run/best.safetensors"), desk_.read("run/last.safetensors"));
  EXPECT_EQ(desk_.tandem("test --run run --data images").code, 0);
  EXPECT_THAT(desk_.refusal("train --resume --out run --steps 5 --ema 0.5"),
              HasSubstr("--ema cannot change"));
}

TEST_F(FineTuningCommand, FindLrSuggestsARateAndLeavesTheRunToBegin) {
  const Outcome outcome =
      desk_.tandem("train --data images --net tiny.prototxt --find-lr --out run");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("suggested: --lr "), HasSubstr("run/find_lr.svg")));
  EXPECT_THAT(desk_.read("run/find_lr.csv"),
              HasSubstr("rate,loss,smoothed,trial_steps,trial_score\n1e-06,"));
  EXPECT_THAT(desk_.read("run/find_lr.svg"), HasSubstr("</svg>"));
  EXPECT_FALSE(std::filesystem::exists(desk_ / "run/run.json"));
  EXPECT_EQ(desk_.tandem("train --data images --net tiny.prototxt --steps 1 --out run").code, 0);
}

TEST_F(FineTuningCommand, FindLrLeavesARunAsItIs) {
  const std::string weights = desk_.read("first/last.safetensors"),
                    log = desk_.read("first/log.txt");
  ASSERT_EQ(desk_.tandem("train --data images --net tiny.prototxt --find-lr --out first").code, 0);
  EXPECT_EQ(desk_.read("first/last.safetensors"), weights);
  EXPECT_EQ(desk_.read("first/log.txt"), log);
  EXPECT_THAT(desk_.refusal("train --resume --out first --find-lr"), HasSubstr("leave one"));
}

TEST_F(FineTuningCommand, WeightsOfATunedRunBeginWithItsNetBeforeTuning) {
  ASSERT_EQ(
      desk_.tandem(std::string(tuned) + "--freeze conv1 --head-lr 10 --label-smoothing 0.1 --out a")
          .code,
      0);
  EXPECT_THAT(desk_.read("a/net.prototxt"), HasSubstr("lr_mult: 10"));
  desk_.draw_two_classes("three");
  desk_.draw("three/train/green", 6, 20, 200, 20);
  desk_.draw("three/val/green", 2, 20, 200, 20);
  const Outcome outcome =
      desk_.tandem("train --data three --weights a --head-lr 10 --steps 2 --out b");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(desk_.read("b/net.prototxt"),
              AllOf(HasSubstr("lr_mult: 10"), Not(HasSubstr("lr_mult: 0")),
                    Not(HasSubstr("lr_mult: 100"))));
  std::filesystem::remove(desk_ / "a/untuned_net.prototxt");
  EXPECT_THAT(desk_.refusal("train --data images --weights a --steps 2 --out c"),
              HasSubstr("has no untuned_net.prototxt"));
}

TEST_F(FineTuningCommand, WeightsOfARunOfImagesThatAreNotSquareKeepTheirSize) {
  const std::string tiny = test::tiny_net();
  desk_.write("wide.prototxt",
              "layer { name: \"data\" type: \"Input\" top: \"data\" top: \"label\" input_param {\n"
              "  shape { dim: 4 dim: 3 dim: 8 dim: 10 } shape { dim: 4 } } }\n" +
                  tiny.substr(tiny.find("layer {\n  name: \"conv1\"")));
  ASSERT_EQ(desk_.tandem("train --data images --net wide.prototxt --steps 2 --out wide").code, 0);
  const Outcome outcome = desk_.tandem("train --data images --weights wide --steps 2 --out run");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr("cropped to the proportions of 8x10, resized to 8x10"));
  EXPECT_FALSE(json::parse(desk_.read("run/run.json")).at("data_parameters").contains("resize"));
}

TEST_F(FineTuningCommand, WeightsOfARunWithoutAMeanAreTrainedWithoutOne) {
  std::string net = test::tiny_net();
  const std::string mean = " mean_value: 128";
  net.erase(net.find(mean), mean.size());
  desk_.write("plain.prototxt", net);
  ASSERT_EQ(desk_.tandem("train --data images --net plain.prototxt --steps 2 --out plain").code, 0);
  const Outcome outcome = desk_.tandem("train --data images --weights plain --steps 2 --out run");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, Not(HasSubstr("channel means")));
  EXPECT_FALSE(json::parse(desk_.read("run/run.json")).at("data_parameters").contains("mean"));
}

TEST_F(FineTuningCommand, ASolverThatNamesANetIsRefusedBesideARun) {
  desk_.write("solver.prototxt", "net: \"tiny.prototxt\" base_lr: 0.01 max_iter: 2\n");
  EXPECT_THAT(desk_.refusal("train --data images --solver solver.prototxt --weights first --out r"),
              AllOf(HasSubstr("--solver solver.prototxt names a net"),
                    HasSubstr("first/best.safetensors")));
  EXPECT_THAT(desk_.refusal("train --data images --weights first,first --out r"),
              HasSubstr("must be given alone"));
}

}  // namespace
}  // namespace tandem
