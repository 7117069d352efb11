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

TEST(ImageFolder, AnEmptyFolderOfASplitIsRefusedWithWhatIsDoneWithoutIt) {
  const TempFolder folder;
  fill_class(folder, "train/cat", 5);
  fill_class(folder, "train/dog", 5);
  const auto refusal_of = [&](const char* split) {
    return refusal(image_options(folder.string(), split));
  };
  std::filesystem::create_directories(folder / "valid");
  EXPECT_THAT(
      refusal_of("val"),
      AllOf(HasSubstr("valid/ holds no images"),
            HasSubstr("without the folder valid/ 20 % of the training images of every class "
                      "are held out: remove or move it")));
  std::filesystem::create_directories(folder / "valid/cat");
  EXPECT_THAT(refusal_of("val"), HasSubstr("without the folder valid/ 20 %"));
  fill_class(folder, "valid", 2);
  EXPECT_THAT(refusal_of("val"), AllOf(HasSubstr("valid/ holds 2 images but no class folders"),
                                       HasSubstr("without the folder valid/ 20 %")));
  std::filesystem::create_directories(folder / "test");
  EXPECT_THAT(refusal_of("test"), HasSubstr("without the folder test/ what validates is tested"));
}

TEST(ImageFolder, ImagesWithoutClassFoldersAreRefused) {
  const TempFolder folder;
  fill_class(folder, ".", 3);
  EXPECT_THAT(refusal(folder), AllOf(HasSubstr("holds 3 images but no class folders"),
                                     HasSubstr("for names that begin with their classes "
                                               "(cat.0.jpg, dog.12.jpg), give --data-option "
                                               "layout=prefix")));
}

TEST(ImageFolder, ImagesWhoseNamesBeginWithTheirClassesAreRefusedWithTheOptionThatReadsThem) {
  const TempFolder folder;
  const std::string png = test::encoded(".png", test::gradient(20, 16));
  for (const char* name :
       {"cat.0", "cat.1", "cat.2", "dog.0", "dog.1", "red car (1)", "red car (2)"}) {
    (void)folder.write(std::string("train/") + name + ".png", png);
  }
  (void)folder.write("train/readme.txt", "x");
  EXPECT_THAT(refusal(folder), HasSubstr("their names begin with cat, dog, red car: if these are "
                                         "the classes, give --data-option layout=prefix"));
  DatasetOptions options = image_options(folder.string());
  options.parameters["layout"] = "prefix";
  const Dataset train = open_images(options);
  EXPECT_THAT(train.class_names(), testing::ElementsAre("cat", "dog", "red car"));
  EXPECT_THAT(train.notes(), HasSubstr("1 file has a name of no image"));
  options.split = "val";
  options.class_names = train.class_names();
  const Dataset val = open_images(options);
  EXPECT_EQ(train.size() + val.size(), 7);
  for (int64_t i = 0; i < val.size(); ++i) {
    const std::string name = val.sample_name(i);
    EXPECT_EQ(val.label(i), name.find("cat.") != name.npos   ? 0
                            : name.find("dog.") != name.npos ? 1
                                                             : 2)
        << name;
  }
  (void)folder.write("test/dog.9.png", png);
  options.split = "test";
  const Dataset tested = open_images(options);
  ASSERT_EQ(tested.size(), 1);
  EXPECT_EQ(tested.label(0), 1);
  (void)folder.write("train/none.png", png);
  options.split = "train";
  EXPECT_THAT(refusal(options), HasSubstr("layout=prefix: the name of 1 of 8 images is no class "
                                          "with a number behind it, as cat.0.jpg is: "));
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
