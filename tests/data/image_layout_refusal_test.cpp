// Every way in which a folder of images can be wrong.
#include "plugins/abi.h"
#ifdef TANDEM_TEST_IMAGES

#include <gmock/gmock.h>
#include <unistd.h>

#include "tests/data/image_data.h"

namespace tandem {
namespace {

using test::fill_class;
using test::image_options;
using test::refusal;
using test::TempFolder;
using testing::AllOf;
using testing::HasSubstr;

TEST(ImageFolder, AMissingFolderIsNamed) {
  const TempFolder folder;
  EXPECT_THAT(refusal(image_options((folder / "gone").string())),
              AllOf(HasSubstr("gone'"), HasSubstr("no such folder")));
}

TEST(ImageFolder, AFileIsNotAFolder) {
  const TempFolder folder;
  const auto file = folder.write("pictures.zip", "x");
  EXPECT_THAT(refusal(image_options(file.string())),
              AllOf(HasSubstr("pictures.zip"), HasSubstr("is a file, not a folder")));
}

TEST(ImageFolder, AFolderWithoutImagesIsReportedWithTheExpectedLayout) {
  const TempFolder folder;
  EXPECT_THAT(refusal(folder), AllOf(HasSubstr("holds no images"), HasSubstr("cat/1.jpg")));
  (void)folder.write("a/readme.txt", "x");
  (void)folder.write("b/readme.txt", "x");
  EXPECT_THAT(refusal(folder), HasSubstr("holds no images"));
}

TEST(ImageFolder, ImagesWithoutClassFoldersAreRefused) {
  const TempFolder folder;
  fill_class(folder, ".", 3);
  EXPECT_THAT(refusal(folder), HasSubstr("holds 3 images but no class folders"));
}

TEST(ImageFolder, ImagesDirectlyInTrainAreNotTwoClassesCalledTrainAndVal) {
  const TempFolder folder;
  fill_class(folder, "train", 3);
  fill_class(folder, "val", 3);
  EXPECT_THAT(refusal(folder), HasSubstr("train/ holds 3 images but no class folders"));
}

TEST(ImageFolder, OneClassOnlyIsRefused) {
  const TempFolder folder;
  fill_class(folder, "cat", 3);
  EXPECT_THAT(refusal(folder), HasSubstr("one class only, 'cat'"));
}

TEST(ImageFolder, AFolderAroundTheClassesIsSuggested) {
  const TempFolder folder;
  fill_class(folder, "pets/cat", 3);
  fill_class(folder, "pets/dog", 3);
  EXPECT_THAT(refusal(folder), HasSubstr("did you mean '" + folder.string() + "/pets'?"));
}

TEST(ImageFolder, AClassWithoutImagesIsNamedWithItsFiles) {
  const TempFolder folder;
  fill_class(folder, "train/cat", 3);
  fill_class(folder, "val/cat", 3);
  (void)folder.write("train/dog/notes.txt", "x");
  EXPECT_THAT(refusal(folder), AllOf(HasSubstr("'train/dog' holds no image"), HasSubstr("1 .txt")));
}

TEST(ImageFolder, AClassOfValThatTrainDoesNotHaveIsNamed) {
  const TempFolder folder;
  for (const char* name : {"train/cat", "train/horse", "val/cat", "val/hourse"}) {
    fill_class(folder, name, 2);
  }
  EXPECT_THAT(refusal(folder, "val"), AllOf(HasSubstr("'val/hourse' is unknown to training"),
                                            HasSubstr("did you mean 'horse'?")));
}

TEST(ImageFolder, ValWithoutTrainIsRefusedUnlessThereIsAModel) {
  const TempFolder folder;
  fill_class(folder, "val/cat", 2);
  fill_class(folder, "val/dog", 2);
  EXPECT_THAT(refusal(folder), HasSubstr("has val/ but no train/"));
  EXPECT_THAT(refusal(folder, "val"), HasSubstr("has val/ but no train/"));
}

TEST(ImageFolder, ANameWithALineBreakIsRefused) {
  for (const char* name : {"cat/two\nlines.jpg", "cat/two\rlines.jpg", "cat/two\nlines/1.jpg"}) {
    const TempFolder folder;
    fill_class(folder, "cat", 3);
    fill_class(folder, "dog", 3);
    (void)folder.write(name, "x");
    EXPECT_THAT(refusal(folder), HasSubstr("the name of image '" + std::string(name) +
                                           "' contains a line break: rename it"));
  }
  const TempFolder folder;
  fill_class(folder, "c\nat", 3);
  EXPECT_THAT(refusal(folder), HasSubstr("class folder 'c\nat' contains a line break"));
}

TEST(ImageFolder, AFolderThatCannotBeReadIsNamed) {
  if (geteuid() == 0) GTEST_SKIP() << "root reads everything";
  const TempFolder folder;
  fill_class(folder, "cat", 2);
  fill_class(folder, "dog", 2);
  std::filesystem::permissions(folder / "dog", std::filesystem::perms::none);
  EXPECT_THAT(refusal(folder), AllOf(HasSubstr("dog"), HasSubstr("cannot be read")));
  std::filesystem::permissions(folder / "dog", std::filesystem::perms::owner_all);
}

}  // namespace
}  // namespace tandem

#endif
