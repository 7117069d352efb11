#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/program.h"

namespace tandem {
namespace {

using test::Desk;
using testing::AllOf;
using testing::HasSubstr;

std::string refusal_of(const Desk& desk, const std::string& data) {
  return desk.refusal("train --net tiny.prototxt --steps 2 --out run --data " + data);
}

TEST(DataErrors, TheNameOfTheReaderOfFoldersIsNotAFolder) {
  const Desk desk;
  EXPECT_THAT(refusal_of(desk, "image_folder"), HasSubstr("give the folder itself"));
}

TEST(DataErrors, AMissingFolderIsNamed) {
  const Desk desk;
  EXPECT_THAT(refusal_of(desk, "nowhere"),
              AllOf(HasSubstr("data 'nowhere': there is no such folder"), HasSubstr("synthetic")));
}

TEST(DataErrors, ALinkToNothingIsNamed) {
  const Desk desk;
  std::filesystem::create_symlink("nowhere", desk / "link");
  EXPECT_THAT(refusal_of(desk, "link"),
              HasSubstr("data 'link': it is a link to 'nowhere', which is missing"));
  for (const char* name : {"red", "blue"}) {
    desk.make_folder(std::string("links/") + name);
    std::filesystem::create_symlink("nowhere", desk / (std::string("links/") + name + "/1.jpg"));
  }
  EXPECT_THAT(refusal_of(desk, "links"), HasSubstr("holds no images (only 2 broken links)"));
}

TEST(DataErrors, AFileInsteadOfTheFolderIsNamed) {
  const Desk desk;
  EXPECT_THAT(refusal_of(desk, "tiny.prototxt"),
              AllOf(HasSubstr("data 'tiny.prototxt'"), HasSubstr("is a file, not a folder"),
                    HasSubstr("a folder for each class")));
}

TEST(DataErrors, AFolderWithoutImagesSaysWhatWasExpected) {
  const Desk desk;
  desk.make_folder("empty");
  EXPECT_THAT(refusal_of(desk, "empty"),
              AllOf(HasSubstr("data 'empty'"), HasSubstr("no images"), HasSubstr("cat/1.jpg")));
}

TEST(DataErrors, OneClassOnlyIsRefusedWithItsName) {
  const Desk desk;
  desk.draw("single/red", 3, 200, 0, 0);
  EXPECT_THAT(refusal_of(desk, "single"),
              AllOf(HasSubstr("data 'single'"), HasSubstr("one class only, 'red'"),
                    HasSubstr("at least two")));
}

TEST(DataErrors, AnEmptyClassIsNamed) {
  const Desk desk;
  desk.draw_two_classes("images");
  desk.make_folder("images/train/green");
  EXPECT_THAT(refusal_of(desk, "images"),
              AllOf(HasSubstr("data 'images'"), HasSubstr("'train/green' holds no image"),
                    HasSubstr("add images, or keep the folder elsewhere")));
}

TEST(DataErrors, AnUnknownClassIsNamedWithTheKnownOnes) {
  const Desk desk;
  desk.draw_two_classes("images");
  desk.draw("images/val/blu", 1, 0, 0, 200);
  EXPECT_THAT(refusal_of(desk, "images"),
              AllOf(HasSubstr("'val/blu' is unknown"), HasSubstr("did you mean 'blue'?"),
                    HasSubstr("blue, red")));
}

TEST(DataErrors, IfAllImagesAreDamagedTheFirstAreListedWithReasons) {
  const Desk desk;
  for (const char* name : {"a/1.jpg", "a/2.jpg", "b/1.jpg", "b/2.jpg", "b/3.jpg"})
    desk.write(std::string("damaged/") + name, "this is no picture");
  EXPECT_THAT(refusal_of(desk, "damaged"),
              AllOf(HasSubstr("none of 3 images can be used, as damaged/"),
                    HasSubstr(".jpg: not an image")));
}

TEST(DataErrors, ADamagedImageAmongGoodOnesIsLeftOutAndListed) {
  const Desk desk;
  desk.draw_two_classes("images");
  desk.write("images/train/red/broken.png", "not a picture");
  const test::Outcome outcome =
      desk.tandem("train --net tiny.prototxt --data images --steps 4 --out run");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr("1 image was left out"));
  EXPECT_THAT(desk.read("run/skipped.txt"), HasSubstr("images/train/red/broken.png: "));
}

TEST(DataErrors, AnUnknownDataOptionGivesTheNearName) {
  const Desk desk;
  desk.draw_two_classes("images");
  EXPECT_THAT(refusal_of(desk, "images --data-option miror=true"),
              AllOf(HasSubstr("unknown parameter 'miror'"), HasSubstr("did you mean 'mirror'?")));
}

TEST(DataErrors, AnotherClassCountNamesTheOptionThatAdaptsTheNet) {
  const Desk desk;
  desk.draw_two_classes("images");
  desk.draw("images/train/green", 3, 0, 200, 0);
  EXPECT_THAT(refusal_of(desk, "images"),
              AllOf(HasSubstr("tiny.prototxt' has 2 outputs"), HasSubstr("3 classes"),
                    HasSubstr("--adapt-classes")));
  const std::string before = desk.read("tiny.prototxt");
  const test::Outcome adapted = desk.tandem(
      "train --net tiny.prototxt --data images --steps 2 --out adapted --adapt-classes");
  EXPECT_EQ(adapted.code, 0) << adapted.errors;
  EXPECT_EQ(desk.read("tiny.prototxt"), before);
  EXPECT_THAT(desk.read("adapted/net.prototxt"), HasSubstr("num_output: 3"));
}

}  // namespace
}  // namespace tandem
