// tandem data and tandem pack, as a user runs them.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/support/page_data.h"

namespace tandem {
namespace {

using test::Desk;
using test::Outcome;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

// Two classes, a copy of a training image in val/, a damaged file.
void make_leaky(const Desk& desk) {
  desk.draw("images/train/red", 30, 200, 0, 0);
  desk.draw("images/train/blue", 6, 0, 0, 200);
  desk.draw("images/val/red", 2, 190, 0, 0);
  desk.draw("images/val/blue", 2, 0, 0, 190);
  desk.write("images/val/red/copy.ppm", desk.read("images/train/red/3.ppm"));
  desk.write("images/train/blue/torn.png", "no picture");
}

TEST(DataCommand, ShowsClassesDamageLeaksAndSuggestions) {
  const Desk desk;
  make_leaky(desk);
  const Outcome outcome = desk.tandem("data images");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.errors, IsEmpty());
  EXPECT_THAT(outcome.output,
              AllOf(HasSubstr("2 classes"), HasSubstr("train: 37 images, 1 of them left out"),
                    HasSubstr("1 x not an image"), HasSubstr("1 image in two splits"),
                    HasSubstr("images/train/red/3.ppm (train, red) = "
                              "images/val/red/copy.ppm (val, red)"),
                    HasSubstr("--balance"), HasSubstr("36 PNM")));
}

TEST(DataCommand, PrintsTheSameAsJson) {
  const Desk desk;
  make_leaky(desk);
  const Outcome outcome = desk.tandem("data images --json");
  const auto tree = nlohmann::json::parse(outcome.output);
  EXPECT_EQ(tree.at("classes"), (std::vector<std::string>{"blue", "red"}));
  EXPECT_EQ(tree.at("splits").at(0).at("class_counts"), (std::vector<int>{6, 30}));
  EXPECT_EQ(tree.at("splits").at(0).at("damaged").size(), 1U);
  EXPECT_EQ(tree.at("leaks").size(), 1U);
  EXPECT_EQ(tree.at("mean").size(), 3U);
  EXPECT_GT(tree.at("mean").at(2).get<double>(), 100);  // most are red
}

TEST(DataCommand, WritesASelfContainedPage) {
  const Desk desk;
  make_leaky(desk);
  const Outcome outcome = desk.tandem("data images --html page.html");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  const std::string page = desk.read("page.html");
  EXPECT_THAT(page, AllOf(StartsWith("<!doctype html>"), Not(HasSubstr("http"))));
  const auto data = test::page_data(page);
  EXPECT_EQ(data.at("leaks").at("count"), 1);
  const auto& leak = data.at("leaks").at("list").at(0);
  EXPECT_EQ(leak.at("image"), "images/train/red/3.ppm");
  const auto& thumbnail = data.at("thumbnails").at(0);
  for (const auto& picture : {leak.at("png"), thumbnail.at("png")}) {
    EXPECT_THAT(picture.get<std::string>(), StartsWith("iVBORw0KGgo"));  // PNG in base64
  }
  desk.write("mine.html", "my own page\n");
  EXPECT_THAT(desk.refusal("data images --html mine.html"), HasSubstr("another kind of file"));
}

TEST(DataCommand, ThePageOfAThousandClassesHasAPictureOfEachAndLessThan3MB) {
  const Desk desk;
  for (int c = 0; c < 1000; ++c) desk.draw(fmt::format("images/train/{}", c), 1, c % 256, 9, 9);
  const Outcome outcome = desk.tandem("data images --html page.html --data-option val_fraction=0");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  const std::string page = desk.read("page.html");
  EXPECT_LT(page.size(), 3U << 20);
  EXPECT_GE(test::page_data(page).at("thumbnails").size(), 1000U);
}

TEST(DataCommand, DrawsImagesAsANetReceivesThem) {
  const Desk desk;
  desk.draw_two_classes("images");
  const Outcome outcome = desk.tandem(
      "data images --net tiny.prototxt --preview seen.png --images 6 --data-option mirror=true");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(desk.read("seen.png"), StartsWith("\x89PNG"));
  EXPECT_THAT(outcome.output, HasSubstr("6 images as net 'tiny' receives them"));
}

TEST(DataCommand, DrawsImagesAsTheNetOfWeightsReceivesThem) {
  const Desk desk;
  desk.draw_two_classes("images");
  ASSERT_EQ(desk.tandem("train --data images --net tiny.prototxt --steps 1 --out first").code, 0);
  const Outcome outcome =
      desk.tandem("data images --weights first --recipe finetune --preview seen.png");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr("images as net 'tiny' receives them"));
}

TEST(DataCommand, DrawsAndPrintsNothingButJson) {
  const Desk desk;
  desk.draw_two_classes("images");
  const Outcome outcome =
      desk.tandem("data images --net tiny.prototxt --preview seen.png --images 6 --json");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(desk.read("seen.png"), StartsWith("\x89PNG"));
  EXPECT_TRUE(nlohmann::json::accept(outcome.output)) << outcome.output;
}

TEST(DataCommand, WritesUtf8OfNamesThatAreInLatin1) {
  const Desk desk;
  make_leaky(desk);
  std::filesystem::rename(desk / "images/train/blue/torn.png", desk / "images/train/blue/\xE9.png");
  std::filesystem::rename(desk / "images/val/red/copy.ppm", desk / "images/val/red/\xE9.ppm");
  const Outcome outcome = desk.tandem("data images --json --html page.html");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  for (const std::string& text : {outcome.output, desk.read("page.html")}) {
    EXPECT_THAT(text, HasSubstr("red/\xEF\xBF\xBD.ppm"));
    EXPECT_THAT(text, Not(HasSubstr("\xE9")));
  }
}

TEST(DataCommand, RefusesWrongInputInOneLine) {
  const Desk desk;
  EXPECT_THAT(desk.refusal("data nowhere"), HasSubstr("data 'nowhere': there is no such folder"));
  EXPECT_THAT(desk.refusal("data"), HasSubstr("source is required"));
  desk.write("list.csv", "a.png,x\nb.png\n");
  EXPECT_THAT(desk.refusal("data list.csv"), HasSubstr("list.csv:2: has 1 fields instead of 2"));
}

TEST(PackCommand, WritesAPackThatTrainsLikeItsFolder) {
  const Desk desk;
  desk.draw_two_classes("images");
  const Outcome packed = desk.tandem("pack images --out images.pack");
  EXPECT_EQ(packed.code, 0) << packed.errors;
  EXPECT_THAT(packed.output, HasSubstr("use it as --data"));
  const std::string train = "train --net tiny.prototxt --steps 4 --seed 3 --data ";
  const Outcome from_pack = desk.tandem(train + "images.pack --out one");
  EXPECT_EQ(from_pack.code, 0) << from_pack.errors;
  EXPECT_EQ(desk.tandem("test --run one --data images").code, 0);
  EXPECT_EQ(desk.tandem("predict --run one images/val/red").code, 0);
  EXPECT_THAT(desk.refusal("pack images --out images.pack"), HasSubstr("exists"));
  EXPECT_THAT(desk.refusal("pack images --out nowhere/a.pack"), HasSubstr("cannot be written"));
}

TEST(PackCommand, CountsInEachSplitTheImagesThatThePackHolds) {
  const Desk desk;
  desk.draw_two_classes("images");
  for (const char* file : {"train/red/a.png", "train/red/b.png", "val/blue/a.png"}) {
    desk.write("images/" + std::string(file), "no picture");
  }
  const Outcome packed = desk.tandem("pack images --out images.pack");
  EXPECT_THAT(packed.output, AllOf(HasSubstr("left out: 3 x "),
                                   HasSubstr("16 images (12 train, 4 val) in 'images.pack'")));
  EXPECT_THAT(desk.tandem("data images.pack").output,
              AllOf(HasSubstr("train: 12 images"), HasSubstr("val: 4 images")));
}

TEST(TrainingData, KeepsADrawnSplitThatCanBeUsedAgain) {
  const Desk desk;
  desk.draw("images/red", 10, 200, 0, 0);
  desk.draw("images/blue", 10, 0, 0, 200);
  const std::string train = "train --net tiny.prototxt --steps 2 --data ";
  const Outcome first = desk.tandem(train + "images --out one --seed 8");
  EXPECT_EQ(first.code, 0) << first.errors;
  EXPECT_THAT(first.output, HasSubstr("the split is kept: --data one/split.csv"));
  const std::string list = desk.read("one/split.csv");
  EXPECT_THAT(list, StartsWith("path,class_name,split\n"));
  EXPECT_EQ(std::count(list.begin(), list.end(), '\n'), 21);
  const Outcome again = desk.tandem(train + "one/split.csv --out two --seed 9");
  EXPECT_EQ(again.code, 0) << again.errors;
  EXPECT_THAT(again.output, HasSubstr("16 training images, 2 classes"));
  EXPECT_EQ(desk.tandem("train --resume --out one --steps 4").code, 0);
  EXPECT_EQ(desk.read("one/split.csv"), list);
}

// Lines would be a comment, quotes and a number with its name.
TEST(TrainingData, ClassesAreWrittenSoThatTheyAreReadAgain) {
  const Desk desk;
  const std::vector<std::vector<std::string>> sets{
      {"plain", "two words"}, {"#1", "b"}, {"'c'", "'d'"}, {"0 e", "1 f"}, {"\"g\\", "h,"}};
  for (const std::vector<std::string>& set : sets) {
    std::string list;
    std::filesystem::remove_all(desk / "run");
    std::filesystem::remove_all(desk / "images");
    for (size_t i = 0; i < set.size(); ++i) {
      desk.draw("images/" + set[i], 4, i == 0 ? 200 : 0, 0, i == 0 ? 0 : 200);
      desk.draw("numbered", 1, 100, 0, 0);
      for (int copy = 0; copy < 4; ++copy) {
        const std::string name = "numbered/" + std::to_string(10 * i + copy) + ".ppm";
        desk.write(name, desk.read("numbered/1.ppm"));
        list += name + " " + std::to_string(i) + "\n";
      }
    }
    const Outcome first =
        desk.tandem("train --net tiny.prototxt --steps 1 --data images --out run");
    ASSERT_EQ(first.code, 0) << first.errors;
    const bool are_lines = set[0] == "plain" || set[0] == "\"g\\";
    EXPECT_NE(desk.read("run/classes.txt").starts_with("["), are_lines) << set[0];
    desk.write("list.txt", list);
    std::filesystem::rename(desk / "run", desk / "named");
    const Outcome again = desk.tandem(
        "train --net tiny.prototxt --steps 1 --data list.txt --data-option "
        "classes=named/classes.txt --out run");
    ASSERT_EQ(again.code, 0) << again.errors;
    const auto names = [&](const char* run) {
      return nlohmann::json::parse(desk.read(std::string(run) + "/run.json")).at("class_names");
    };
    EXPECT_EQ(names("run"), names("named"));
    std::filesystem::remove_all(desk / "named");
  }
}

TEST(TrainingData, StrictEndsAtTheFirstDamagedImage) {
  const Desk desk;
  desk.draw_two_classes("images");
  const std::string train = "train --net tiny.prototxt --steps 8 --data images ";
  desk.write("images/train/red/torn.png", "no picture");
  EXPECT_THAT(desk.refusal(train + "--strict --out one"),
              AllOf(HasSubstr("images/train/red/torn.png' cannot be used, and every one must be"),
                    HasSubstr("not an image")));
  EXPECT_EQ(desk.tandem(train + "--out two").code, 0);
  std::filesystem::remove(desk / "images/train/red/torn.png");
  desk.write("images/val/red/torn.png", "no picture");
  EXPECT_THAT(desk.refusal(train + "--strict --out three"),
              HasSubstr("validation image 'images/val/red/torn.png' cannot be used"));
  EXPECT_THAT(desk.refusal(train + "--bad-limit 101 --out four"), HasSubstr("--bad-limit 101"));
}

TEST(TrainingData, HasALimitOfDamagedImages) {
  const Desk desk;
  desk.draw_two_classes("images");
  for (int i = 0; i < 4; ++i) {
    desk.write("images/train/red/torn" + std::to_string(i) + ".png", "no picture");
  }
  const std::string train = "train --net tiny.prototxt --steps 8 --data images ";
  EXPECT_THAT(desk.refusal(train + "--bad-limit 10 --out one"),
              AllOf(HasSubstr("of the 16 images, or more, cannot be used ("),
                    HasSubstr("the limit is 10.0 %: --bad-limit)"), HasSubstr("torn")));
  const Outcome all = desk.tandem(train + "--bad-limit 100 --out two");
  EXPECT_EQ(all.code, 0) << all.errors;
  EXPECT_THAT(all.output, HasSubstr("4 images were left out"));
}

TEST(TrainingData, MayBeBalancedAlsoAfterResuming) {
  const Desk desk;
  desk.draw("images/train/red", 12, 200, 0, 0);
  desk.draw("images/train/blue", 3, 0, 0, 200);
  desk.draw("images/val/red", 2, 200, 0, 0);
  desk.draw("images/val/blue", 2, 0, 0, 200);
  const std::string train = "train --net tiny.prototxt --data images --balance ";
  EXPECT_EQ(desk.tandem(train + "--steps 8 --out whole").code, 0);
  EXPECT_EQ(desk.tandem(train + "--steps 5 --out parts").code, 0);
  const Outcome resumed = desk.tandem("train --resume --out parts --steps 8");
  EXPECT_EQ(resumed.code, 0) << resumed.errors;
  EXPECT_EQ(desk.read("parts/last.safetensors"), desk.read("whole/last.safetensors"));
}

}  // namespace
}  // namespace tandem
