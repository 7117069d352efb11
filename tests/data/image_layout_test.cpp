// The classes and splits of the images of a folder.
#include "plugins/abi.h"
#ifdef TANDEM_TEST_IMAGES

#include <gmock/gmock.h>
#include <unistd.h>

#include <set>

#include "tests/data/image_data.h"

namespace tandem {
namespace {

using test::fill_class;
using test::get;
using test::image_options;
using test::open_images;
using test::refusal;
using test::TempFolder;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::set<std::string> names_of(const Dataset& data) {
  std::set<std::string> names;
  for (int64_t i = 0; i < data.size(); ++i) names.insert(data.sample_name(i));
  return names;
}

std::vector<int64_t> counts_of(const Dataset& data) {
  std::vector<int64_t> counts(static_cast<size_t>(data.class_count()));
  for (int64_t i = 0; i < data.size(); ++i) ++counts.at(static_cast<size_t>(get(data, i).label));
  return counts;
}

TEST(ImageFolder, TrainAndValFoldersAreTheSplits) {
  const TempFolder folder;
  fill_class(folder, "train/cat", 3);
  fill_class(folder, "train/dog", 2);
  fill_class(folder, "val/dog", 1);
  fill_class(folder, "val/cat", 4);
  EXPECT_THAT(open_images(folder).class_names(), ElementsAre("cat", "dog"));
  EXPECT_THAT(counts_of(open_images(folder)), ElementsAre(3, 2));
  EXPECT_THAT(counts_of(open_images(folder, "val")), ElementsAre(4, 1));
}

TEST(ImageFolder, ValidCountsAsVal) {
  const TempFolder folder;
  fill_class(folder, "train/cat", 3);
  fill_class(folder, "train/dog", 2);
  fill_class(folder, "valid/dog", 1);
  EXPECT_THAT(counts_of(open_images(folder, "val")), ElementsAre(0, 1));
}

TEST(ImageFolder, ClassesAreInNaturalOrder) {
  const TempFolder folder;
  for (const char* name : {"10", "9", "2", "a10", "a9"}) fill_class(folder, name, 2);
  EXPECT_THAT(open_images(folder).class_names(), ElementsAre("2", "9", "10", "a9", "a10"));
}

TEST(ImageFolder, ValIsMappedByNameWhateverItsOrder) {
  const TempFolder folder;
  for (const char* name : {"train/a", "train/b", "train/c", "val/c"}) fill_class(folder, name, 1);
  const Dataset val = open_images(folder, "val");
  EXPECT_EQ(val.class_count(), 3);
  EXPECT_EQ(get(val).label, 2);
  EXPECT_THAT(val.notes(), AllOf(HasSubstr("val/"), HasSubstr("2 of 3 classes: a, b")));
}

TEST(ImageFolder, OneTreeIsSplitByClassIntoPartsThatShareNoImage) {
  const TempFolder folder;
  fill_class(folder, "cat", 10);
  fill_class(folder, "dog", 20);
  const Dataset train = open_images(folder), val = open_images(folder, "val");
  EXPECT_THAT(counts_of(train), ElementsAre(8, 16));
  EXPECT_THAT(counts_of(val), ElementsAre(2, 4));
  std::set<std::string> all = names_of(train);
  all.merge(names_of(val));
  EXPECT_EQ(all.size(), 30U);
  EXPECT_THAT(train.notes(), AllOf(HasSubstr("20 %"), HasSubstr("seed 1")));
}

TEST(ImageFolder, TheSplitFollowsTheSeedAndNothingElse) {
  const TempFolder folder;
  fill_class(folder, "cat", 30);
  fill_class(folder, "dog", 30);
  DatasetOptions options = image_options(folder.string(), "val");
  const auto first = names_of(open_images(options));
  EXPECT_EQ(names_of(open_images(options)), first);
  options.seed = 2;
  EXPECT_NE(names_of(open_images(options)), first);
}

TEST(ImageFolder, ValFractionIsHeldOutButNeverAllOfAClass) {
  const TempFolder folder;
  fill_class(folder, "cat", 10);
  fill_class(folder, "dog", 2);
  DatasetOptions options = image_options(folder.string(), "val");
  options.parameters["val_fraction"] = "0.99";
  EXPECT_THAT(counts_of(open_images(options)), ElementsAre(9, 1));
  options.parameters["val_fraction"] = "0.01";
  EXPECT_THAT(counts_of(open_images(options)), ElementsAre(1, 1));
  options.parameters["val_fraction"] = "1";
  EXPECT_THAT(counts_of(open_images(options)), ElementsAre(10, 2));
  options.split = "train";
  EXPECT_THAT(refusal(options), HasSubstr("val_fraction 1 leaves no image to train on"));
}

TEST(ImageFolder, OneImageAClassSaysWhatToDo) {
  const TempFolder folder;
  fill_class(folder, "cat", 1);
  fill_class(folder, "dog", 1);
  EXPECT_THAT(refusal(image_options(folder.string(), "val")),
              AllOf(HasSubstr("every class has one image"), HasSubstr("add images"),
                    HasSubstr("val_fraction=0")));
}

TEST(ImageFolder, TrainWithoutValIsSplitAsOneTree) {
  const TempFolder folder;
  fill_class(folder, "train/cat", 5);
  fill_class(folder, "train/dog", 5);
  fill_class(folder, "test/dog", 7);
  EXPECT_THAT(counts_of(open_images(folder)), ElementsAre(4, 4));
  EXPECT_THAT(counts_of(open_images(folder, "val")), ElementsAre(1, 1));
  EXPECT_THAT(counts_of(open_images(folder, "test")), ElementsAre(0, 7));
}

TEST(ImageFolder, TestFallsBackToValWithANote) {
  const TempFolder folder;
  fill_class(folder, "train/cat", 5);
  fill_class(folder, "train/dog", 5);
  fill_class(folder, "val/dog", 2);
  const Dataset test = open_images(folder, "test");
  EXPECT_EQ(test.size(), 2);
  EXPECT_THAT(test.notes(), HasSubstr("tested on val/"));
}

TEST(ImageFolder, AClassMayBeCalledTrain) {
  const TempFolder folder;
  for (const char* name : {"bus", "car", "train"}) fill_class(folder, name, 2);
  EXPECT_THAT(open_images(folder).class_names(), ElementsAre("bus", "car", "train"));
}

TEST(ImageFolder, LitterIsIgnoredAndOtherFilesAreCounted) {
  const TempFolder folder;
  fill_class(folder, "cat", 2);
  fill_class(folder, "dog", 2);
  fill_class(folder, "__MACOSX", 2);
  fill_class(folder, ".git", 2);
  (void)folder.write("cat/.DS_Store", "x");
  (void)folder.write("cat/Thumbs.db", "x");
  (void)folder.write("cat/labels.TXT", "x");
  (void)folder.write("dog/b.txt", "x");
  (void)folder.write("dog/moving.mp4", "x");
  const Dataset data = open_images(folder);
  EXPECT_THAT(data.class_names(), ElementsAre("cat", "dog"));
  EXPECT_THAT(data.notes(),
              AllOf(HasSubstr("3 files have a name of no image and are left out: 1 .mp4 (a film; "),
                    HasSubstr("2 .txt")));
}

TEST(ImageFolder, SubfoldersOfAClassAreReadInNaturalOrder) {
  const TempFolder folder;
  fill_class(folder, "cat/2", 2);
  fill_class(folder, "cat/10", 1);
  fill_class(folder, "dog", 2);
  fill_class(folder, "val", 0);
  DatasetOptions options = image_options(folder.string());
  options.parameters["val_fraction"] = "0";
  const Dataset data = open_images(options);
  EXPECT_EQ(data.size(), 3 + 2) << "nothing is held out";
  options.split = "val";
  options.parameters["val_fraction"] = "1";
  const Dataset all = open_images(options);
  EXPECT_EQ(all.sample_name(0), (folder / "cat/2/1.jpg").string());
  EXPECT_EQ(all.sample_name(2), (folder / "cat/10/1.jpg").string());
}

TEST(ImageFolder, LinksAreFollowedAndCyclesEnd) {
  const TempFolder elsewhere, folder;
  fill_class(elsewhere, "pets", 4);
  fill_class(folder, "dog", 3);
  std::filesystem::create_directory_symlink(elsewhere / "pets", folder / "cat");
  std::filesystem::create_directory_symlink(folder / "dog", folder / "dog/again");
  std::filesystem::create_symlink(folder / "nowhere.jpg", folder / "dog/broken.jpg");
  DatasetOptions options = image_options(folder.string(), "val");
  options.parameters["val_fraction"] = "1";
  const Dataset data = open_images(options);
  EXPECT_THAT(counts_of(data), ElementsAre(4, 3));
  EXPECT_THAT(data.notes(), HasSubstr("1 broken link"));
}

TEST(ImageFolder, NamesMayBeUnicodeWithSpaces) {
  const TempFolder folder;
  fill_class(folder, "Кошка и кот", 2);
  fill_class(folder, "größe 猫", 2);
  const Dataset data = open_images(folder);
  EXPECT_THAT(data.class_names(), ElementsAre("größe 猫", "Кошка и кот"));
  EXPECT_EQ(get(data).status, SampleStatus::good);
}

// ---- With the classes of a model ----

TEST(ImageFolder, AModelsClassesNumberTheFolders) {
  const TempFolder folder;
  fill_class(folder, "test/dog", 2);
  DatasetOptions options = image_options(folder.string(), "test");
  options.class_names = {"zebra", "dog", "cat"};
  const Dataset data = open_images(options);
  EXPECT_THAT(data.class_names(), ElementsAre("zebra", "dog", "cat"));
  EXPECT_EQ(get(data).label, 1);
  EXPECT_THAT(data.notes(), HasSubstr("zebra, cat"));
}

TEST(ImageFolder, AFolderThatTheModelDoesNotHaveIsNamed) {
  const TempFolder folder;
  fill_class(folder, "dogs", 2);
  fill_class(folder, "cat", 2);
  DatasetOptions options = image_options(folder.string(), "test");
  options.class_names = {"cat", "dog"};
  EXPECT_THAT(refusal(options),
              AllOf(HasSubstr("class folder 'dogs' is unknown to training"),
                    HasSubstr("did you mean 'dog'?"), HasSubstr("known classes: cat, dog")));
}

TEST(ImageFolder, PredictReadsFilesAndFolders) {
  const TempFolder folder;
  fill_class(folder, "some", 3);
  (void)folder.write("no_extension", test::encoded(".png", test::gradient(9, 9)));
  DatasetOptions options =
      image_options(folder.string() + "/no_extension\n" + folder.string() + "/some\n", "predict");
  options.class_names = {"cat", "dog"};
  const Dataset data = open_images(options);
  ASSERT_EQ(data.size(), 4);
  EXPECT_EQ(data.sample_name(0), (folder / "no_extension").string());
  EXPECT_EQ(get(data, 0).status, SampleStatus::good);
  EXPECT_EQ(data.sample_name(3), (folder / "some/3.jpg").string());
  options.source = (folder / "gone.jpg").string();
  EXPECT_THAT(refusal(options), HasSubstr("gone.jpg' does not exist"));
}

// ---- What is wrong with a folder ----

TEST(ImageFolder, NoFileIsEverWritten) {
  const TempFolder folder;
  fill_class(folder, "cat", 3);
  fill_class(folder, "dog", 3);
  (void)folder.write("cat/broken.jpg", "not a picture");
  const auto listing = [&] {
    std::vector<std::pair<std::string, std::string>> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path())) {
      if (entry.is_regular_file()) {
        files.emplace_back(entry.path().string(), test::read_text(entry.path()));
      }
    }
    return files;
  };
  const auto before = listing();
  const Dataset data = open_images(folder), val = open_images(folder, "val");
  for (int64_t i = 0; i < data.size(); ++i) (void)get(data, i);
  EXPECT_EQ(listing(), before);
}

}  // namespace
}  // namespace tandem

#else
#include <gtest/gtest.h>
TEST(ImageFolder, IsNotTestedWithoutOpenCV) {
  GTEST_SKIP() << "built without OpenCV";
}
#endif
