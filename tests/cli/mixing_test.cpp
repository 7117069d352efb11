// Mixup, CutMix and class weights, as a user gives them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace tandem {
namespace {

using test::Desk;
using test::Outcome;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* mixed = " --mixup 0.4 --cutmix 1 --class-weights 1,3";

class Mixing : public testing::Test {
 protected:
  Mixing() { desk_.draw_two_classes("images"); }
  // "" if it went well.
  std::string train(const std::string& out, const std::string& more) {
    const Outcome outcome = desk_.tandem("train --net tiny.prototxt --data images --batch 8 --lr " +
                                         ("0.01 --out " + out) + more);
    return outcome.code == 0 ? "" : outcome.output + outcome.errors;
  }
  std::string refusal(const std::string& more) {
    return desk_.refusal("train --net tiny.prototxt --data images --steps 2 --out no" + more);
  }
  Desk desk_;
};

TEST_F(Mixing, ContinuesAfterAResumeAsIfNeverStopped) {
  ASSERT_EQ(train("whole", std::string(" --steps 12") + mixed), "");
  ASSERT_EQ(train("parts", std::string(" --steps 6 --snapshot 6") + mixed), "");
  ASSERT_EQ(desk_.tandem("train --out parts --resume --steps 12").code, 0);
  EXPECT_TRUE(desk_.read("parts/last.safetensors") == desk_.read("whole/last.safetensors"));
  ASSERT_EQ(train("plain", " --steps 12"), "");
  EXPECT_FALSE(desk_.read("plain/last.safetensors") == desk_.read("whole/last.safetensors"));
  EXPECT_THAT(desk_.read("whole/net.prototxt"), HasSubstr("class_targets"));
  EXPECT_EQ(desk_.tandem("test --run whole --data images").code, 0);
  EXPECT_THAT(desk_.refusal("train --out parts --resume --steps 14 --mixup 0.9"),
              HasSubstr("--mixup cannot change when run 'parts' is resumed"));
}

TEST_F(Mixing, BalancedWeightsOfABalancedFolderChangeNothing) {
  ASSERT_EQ(train("plain", " --steps 6"), "");
  ASSERT_EQ(train("weighed", " --steps 6 --class-weights balanced"), "");
  EXPECT_TRUE(desk_.read("plain/last.safetensors") == desk_.read("weighed/last.safetensors"));
}

TEST_F(Mixing, ShowsInTheTimelineWhichThreadLoadedABatch) {
  ASSERT_EQ(train("run", " --steps 8 --decode-threads 2"), "");
  const auto events = nlohmann::json::parse(desk_.read("run/timeline.json")).at("traceEvents");
  double first_load = 1e30, first_copy = 1e30, last = 0;
  for (const auto& event : events) {
    if (event.at("ph") != "X") continue;
    const double begin = event.at("ts");
    last = std::max(last, begin);
    const std::string name = event.at("name");
    if (name.starts_with("load batch")) first_load = std::min(first_load, begin);
    if (name.starts_with("copy input")) first_copy = std::min(first_copy, begin);
  }
  EXPECT_LT(first_load, first_copy) << "a batch is loaded before it is copied";
  EXPECT_LE(first_copy, last);
}

TEST_F(Mixing, ReadsClassWeightsFromAFile) {
  desk_.write("weights.txt", "red 0.5\nblue, 2\n");
  ASSERT_EQ(train("run", " --steps 2 --class-weights weights.txt"), "");
  EXPECT_THAT(nlohmann::json::parse(desk_.read("run/run.json")).at("class_weights"),
              ElementsAre(2, 0.5))
      << "blue comes first";
  desk_.write("weights.txt", "red 1\ngreen 2\n");
  EXPECT_THAT(refusal(" --class-weights weights.txt"),
              HasSubstr("weights.txt:2: there is no class 'green'"));
  desk_.write("weights.txt", "red 1\n");
  EXPECT_THAT(refusal(" --class-weights weights.txt"), HasSubstr("class 'blue' has no weight"));
  desk_.write("weights.txt", "red much\n");
  EXPECT_THAT(refusal(" --class-weights weights.txt"),
              HasSubstr("weights.txt:1: 'much' is not a weight"));
}

TEST_F(Mixing, RefusesWrongOptionsInOneLine) {
  EXPECT_THAT(refusal(" --mixup -1"), HasSubstr("--mixup -1: shares are drawn from Beta(x, x)"));
  EXPECT_THAT(refusal(" --class-weights 1,2,3"), HasSubstr("3 class weights for 2 classes"));
  EXPECT_THAT(refusal(" --class-weights 0,0"), HasSubstr("all class weights are 0"));
  EXPECT_THAT(refusal(" --class-weights nowhere.txt"),
              HasSubstr("class weights 'nowhere.txt': neither 'balanced', nor numbers"));
  EXPECT_THAT(refusal(" --balance --class-weights balanced"),
              HasSubstr("each compensates for rare classes"));
  desk_.write("tiny.prototxt", test::replaced(test::tiny_net(), "SoftmaxWithLoss", "HingeLoss"));
  EXPECT_THAT(refusal(" --cutmix 1"),
              AllOf(HasSubstr("(HingeLoss): takes class numbers"), HasSubstr("tiny.prototxt:")));
}

TEST_F(Mixing, IsShownInThePreview) {
  const std::string preview = "data images --net tiny.prototxt --images 6 --preview ";
  ASSERT_EQ(desk_.tandem(preview + "plain.png").code, 0);
  ASSERT_EQ(desk_.tandem(preview + "mixed.png --mixup 5").code, 0);
  EXPECT_FALSE(desk_.read("plain.png") == desk_.read("mixed.png"));
}

}  // namespace
}  // namespace tandem
