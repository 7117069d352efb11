// Folders of images as people have them: what is taken for what, and what is refused as a guess.
#include "plugins/abi.h"
#ifdef TANDEM_TEST_IMAGES

#include <gmock/gmock.h>

#include "tests/data/image_data.h"

namespace tandem {
namespace {

using test::fill_class;
using test::image_options;
using test::open_images;
using test::refusal;
using test::TempFolder;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

DatasetOptions as_classes(const TempFolder& folder) {
  DatasetOptions options = image_options(folder.string());
  options.parameters["layout"] = "classes";
  return options;
}

// `names` in `folder`, all with the same bytes.
void fill(const TempFolder& root, const std::string& folder,
          const std::vector<std::string>& names) {
  const std::string png = test::encoded(".png", test::gradient(9, 9));
  for (const std::string& name : names) (void)root.write(folder + "/" + name, png);
}

TEST(ImageGuess, SplitFoldersAreKnownByTheirUsualNames) {
  const std::vector<std::vector<std::string>> cases = {
      {"training_set", "test_set"},
      {"Train", "Valid", "Test"},
      {"trainset", "valset"},
      {"TrainingImages", "ValidationImages"},
      {"train2017", "val2017"},
      {"TRAINING", "dev"},
      {"flowers-train", "flowers-test"},
      {"GTSRB_Final_Training", "GTSRB_Final_Test"}};
  for (const auto& names : cases) {
    const TempFolder folder;
    for (const std::string& name : names) {
      fill_class(folder, name + "/cat", 3);
      fill_class(folder, name + "/dog", 3);
    }
    const Dataset data = open_images(folder);
    EXPECT_THAT(data.class_names(), ElementsAre("cat", "dog")) << names[0];
    EXPECT_THAT(data.notes(), HasSubstr(names[0] + "/ is the split train")) << names[0];
  }
}

TEST(ImageGuess, MasksBesideTheirPicturesAreNoPicturesOfTheClass) {
  const std::vector<std::vector<std::string>> cases = {
      {"x (1).png", "x (1)_mask.png", "x (2).png", "x (2)_mask.png", "x (2)_mask_1.png"},
      {"ISIC_01.png", "ISIC_01_segmentation.png", "ISIC_02.png", "ISIC_02_Segmentation.png"},
      {"a1.png", "a1-gt.png", "a2.png", "a2-gt.png"},
      {"in/1.png", "in/1.mask.png", "in/2.png", "in/2.mask.png"}};
  for (const auto& names : cases) {
    const TempFolder folder;
    fill(folder, "cat", names);
    fill_class(folder, "dog", 3);
    EXPECT_THAT(refusal(folder), AllOf(HasSubstr("masks or drawings of others beside them"),
                                       HasSubstr("layout=classes")))
        << names[1];
    EXPECT_EQ(open_images(as_classes(folder)).class_names().size(), 2U);
  }
  // A few bottles with their labels.
  const TempFolder bottles;
  fill(bottles, "wine",
       {"a.png", "a_label.png", "b.png", "b_label.png", "c.png", "d.png", "e.png"});
  fill_class(bottles, "beer", 3);
  EXPECT_EQ(refusal(bottles), "");
  // A word alone, without the picture, is a name.
  const TempFolder folder;
  fill(folder, "cat", {"face_mask.png", "paint_mask.png", "a_1.png", "a_2.png"});
  fill_class(folder, "dog", 3);
  EXPECT_EQ(refusal(folder), "");
}

TEST(ImageGuess, WhatSystemsAndDrivesKeepIsNoClass) {
  const TempFolder folder;
  for (const char* name : {"cat", "dog", "#recycle", "@Recycle", "#snapshot", "$RECYCLE.BIN",
                           "System Volume Information", "cat/@eaDir", ".Trash-1000"}) {
    fill_class(folder, name, 3);
  }
  (void)folder.write("FOUND.000/file", "x");
  const Dataset data = open_images(folder);
  EXPECT_THAT(data.class_names(), ElementsAre("cat", "dog"));
  EXPECT_EQ(data.size() + open_images(folder, "val").size(), 6);
}

TEST(ImageGuess, SubfoldersThatAreJoinedToAClassAreNamed) {
  const TempFolder folder, wrapped;
  for (const char* name : {"Apple/Scab", "Apple/Rot", "Corn/Rust", "Corn/Blight"}) {
    fill_class(folder, name, 2);
  }
  EXPECT_THAT(open_images(folder).notes(),
              HasSubstr("images in subfolders are of the class above them: Apple (Rot, Scab), Corn "
                        "(Blight, Rust); to learn the subfolders as classes, move them up"));
  EXPECT_THAT(open_images(as_classes(folder)).notes(), Not(HasSubstr("subfolders")));
  for (const char* name : {"cat/images", "dog/images"}) fill_class(wrapped, name, 3);
  EXPECT_THAT(open_images(wrapped).notes(), Not(HasSubstr("subfolders")));
}

TEST(ImageGuess, NamesOfTheReferenceNeedNoNote) {
  const TempFolder folder;
  for (const char* name : {"train/a", "train/b", "valid/a", "test/b"}) fill_class(folder, name, 2);
  EXPECT_EQ(open_images(folder).notes(), "");
}

TEST(ImageGuess, BesideDevEvalIsTheTestSplit) {
  const TempFolder folder;
  for (const char* name : {"train/a", "train/b", "dev/a", "eval/b"}) fill_class(folder, name, 2);
  EXPECT_THAT(open_images(folder).notes(),
              HasSubstr("dev/ is the split val, eval/ is the split test"));
  EXPECT_EQ(open_images(folder, "test").sample_name(0), (folder / "eval/b/1.jpg").string());
}

TEST(ImageGuess, AFolderOfTheSameNameInsideIsOpened) {
  const TempFolder folder;
  for (const char* split : {"seg_train/seg_train", "seg_test/seg_test"}) {
    fill_class(folder, std::string(split) + "/forest", 2);
    fill_class(folder, std::string(split) + "/street", 2);
  }
  EXPECT_THAT(open_images(folder).class_names(), ElementsAre("forest", "street"));
  EXPECT_THAT(open_images(folder).notes(), HasSubstr("seg_train/seg_train/ is the split train"));
}

TEST(ImageGuess, FoldersBesideTheSplitsAreNamed) {
  const TempFolder folder;
  for (const char* name : {"train/a", "train/b", "test/a", "samples"}) fill_class(folder, name, 2);
  EXPECT_THAT(open_images(folder).notes(), HasSubstr("not read, as beside the splits: samples"));
}

TEST(ImageGuess, TwoFoldersOfOneSplitAreRefused) {
  for (const auto& [one, two] :
       {std::pair{"train", "Training"}, {"train_1", "train_2"}, {"train", "trainset"}}) {
    const TempFolder folder;
    for (const char* name : {one, two, "val"}) {
      fill_class(folder, std::string(name) + "/a", 2);
      fill_class(folder, std::string(name) + "/b", 2);
    }
    EXPECT_THAT(refusal(folder),
                AllOf(HasSubstr(one), HasSubstr(two), HasSubstr("would all be the split 'train'")));
  }
}

TEST(ImageGuess, FlatSplitsAreRefusedWithTheListBesideThem) {
  const TempFolder folder;
  fill_class(folder, "Train_Images", 3);
  fill_class(folder, "Test_Images", 3);
  EXPECT_THAT(refusal(folder), AllOf(HasSubstr("Train_Images/ holds 3 images but no class folders"),
                                     HasSubstr("a list of the images and their classes")));
  (void)folder.write("labels.csv", "x");
  EXPECT_THAT(refusal(folder), AllOf(HasSubstr("labels.csv' has the classes, give it as --data"),
                                     HasSubstr("root=" + (folder / "Train_Images").string())));
}

TEST(ImageGuess, TestImagesWithoutClassesAreNoSplit) {
  const TempFolder folder;
  for (const char* name : {"train/a", "train/b", "test1"}) fill_class(folder, name, 2);
  const Dataset data = open_images(folder);
  EXPECT_THAT(data.class_names(), ElementsAre("a", "b"));
  EXPECT_THAT(data.notes(), HasSubstr("the 2 images of test1/ have no classes: not a test split"));
  EXPECT_THAT(open_images(folder, "test").class_names(), ElementsAre("a", "b"));
}

TEST(ImageGuess, TestImagesInOneFolderThatIsNoClassAreNoSplit) {
  const TempFolder folder;
  for (const char* name : {"train/cat", "train/dog", "val/cat", "test/unknown"}) {
    fill_class(folder, name, 2);
  }
  EXPECT_THAT(open_images(folder).notes(),
              HasSubstr("the 2 images of test/ have no classes: not a test split"));
  EXPECT_THAT(open_images(folder, "test").notes(), HasSubstr("tested on val/"));
  // What looks like a class may be one that is misspelled, and two folders are classes.
  fs::rename(folder / "test/unknown", folder / "test/Cat");
  EXPECT_THAT(refusal(folder, "test"), HasSubstr("(did you mean 'cat'?)"));
  fs::rename(folder / "test/Cat", folder / "test/lion");
  fill_class(folder, "test/bear", 2);
  EXPECT_THAT(refusal(folder, "test"), HasSubstr("class folder 'test/bear' is unknown"));
}

TEST(ImageGuess, OneFolderAroundTheClassesOfEachSplitIsOpened) {
  const TempFolder folder;
  for (const char* name : {"train/images/cat", "train/images/dog", "val/images/cat"}) {
    fill_class(folder, name, 2);
  }
  const Dataset train = open_images(folder), val = open_images(folder, "val");
  EXPECT_THAT(train.class_names(), ElementsAre("cat", "dog"));
  EXPECT_THAT(train.notes(), HasSubstr("train/images/ is the split train, val/images/ is the"));
  EXPECT_EQ(train.size(), 4);
  EXPECT_EQ(val.sample_name(0), (folder / "val/images/cat/1.jpg").string());
}

TEST(ImageGuess, WordsOfSplitsInNamesOfClassesAreClasses) {
  for (const std::vector<std::string>& names : {std::vector<std::string>{"invalid", "valid"},
                                                {"bus", "toy_train"},
                                                {"dev", "ops"},
                                                {"contest", "protest"},
                                                {"test_tube", "testing_kit"}}) {
    const TempFolder folder;
    for (const std::string& name : names) fill_class(folder, name, 3);
    EXPECT_EQ(open_images(folder).class_names(), names);
  }
}

TEST(ImageGuess, AnOptionMakesClassesOfAnyFolders) {
  const TempFolder folder;
  for (const char* name : {"train/old", "train/new", "test/old", "test/new"}) {
    fill_class(folder, name, 2);
  }
  EXPECT_THAT(open_images(as_classes(folder)).class_names(), ElementsAre("test", "train"));
}

// ---- Folders that are no classes ----

TEST(ImageGuess, ClassesThatHoldTheSameFoldersAreRefused) {
  const std::vector<std::vector<std::string>> cases = {
      {"part1/cat", "part1/dog", "part2/cat", "part2/dog"},
      {"2019/cat", "2019/dog", "2020/Cat", "2020/Dog", "2020/horse"},
      {"gallery/a", "gallery/b", "query/a", "query/b", "probe/a", "probe/b"},
      {"cat/train", "cat/test", "dog/train", "dog/test"},
      {"cat/Training", "dog/Training"},
      {"amazon/images/pen", "amazon/images/cup", "dslr/images/pen", "dslr/images/cup"}};
  for (const auto& names : cases) {
    const TempFolder folder;
    for (const std::string& name : names) fill_class(folder, name, 2);
    EXPECT_THAT(refusal(folder), AllOf(HasSubstr("hold the same folders ("),
                                       HasSubstr("--data-option layout=classes")))
        << names[0];
    EXPECT_EQ(test::refusal(as_classes(folder)), "") << names[0];
  }
}

TEST(ImageGuess, FoldersInsideOneClassOrOneInEachAreItsImages) {
  const TempFolder folder;
  for (const char* name : {"n01/images", "n02/images", "n03/images"}) fill_class(folder, name, 2);
  EXPECT_THAT(open_images(folder).class_names(), ElementsAre("n01", "n02", "n03"));
  const TempFolder other;
  for (const char* name : {"cat/day", "cat/night", "dog", "fish"}) fill_class(other, name, 2);
  EXPECT_THAT(open_images(other).class_names(), ElementsAre("cat", "dog", "fish"));
}

TEST(ImageGuess, PicturesBesideTheirMasksAreNotTwoClasses) {
  for (const auto& [one, two] : {std::pair{"images", "masks"},
                                 {"Images", "Annotations"},
                                 {"train/images", "train/labels"},
                                 {"JPEGImages", "depth"}}) {
    const TempFolder folder;
    fill_class(folder, one, 3);
    fill_class(folder, two, 3);
    fill_class(folder, "val/images", 1);
    EXPECT_THAT(refusal(folder), HasSubstr("are pictures and what belongs to each of them")) << one;
  }
}

TEST(ImageGuess, TwoClassesOfTheSameFileNamesAreRefused) {
  const std::vector<std::vector<std::string>> cases = {{"anna.png", "bert.png", "carl.png"},
                                                       {"IMG_2034.png", "IMG_2077.png"},
                                                       {"9f1c.png", "77ab.png", "0d12.png"},
                                                       {"0001_a.png", "0002_b.png"}};
  for (const auto& names : cases) {
    const TempFolder folder;
    fill(folder, "left", names);
    fill(folder, "right", names);
    EXPECT_THAT(refusal(folder), AllOf(HasSubstr("'left' and 'right' hold files of the same names"),
                                       HasSubstr("layout=classes")))
        << names[0];
    EXPECT_THAT(open_images(as_classes(folder)).class_names(), ElementsAre("left", "right"));
  }
}

TEST(ImageGuess, NumberedFilesAndDifferentNamesAreClasses) {
  const std::vector<std::pair<std::vector<std::string>, std::vector<std::string>>> cases = {
      {{"000.png", "001.png", "002.png"}, {"000.png", "001.png", "002.png"}},
      {{"image_1.png", "image_2.png"}, {"image_1.png", "image_2.png"}},
      {{"anna.png", "bert.png"}, {"anna.png", "carl.png"}},
      {{"anna.png"}, {"anna.png"}}};
  for (const auto& [one, two] : cases) {
    const TempFolder folder;
    fill(folder, "left", one);
    fill(folder, "right", two);
    fill_class(folder, "third", 2);
    EXPECT_EQ(open_images(folder).class_count(), 3) << one[0];
  }
}

// ---- What Tandem wrote ----

void write_run(const TempFolder& root, const std::string& folder) {
  (void)root.write(folder + "/run.json", "{}");
  (void)root.write(folder + "/net.prototxt", "");
  (void)root.write(folder + "/report.html", "");
}

TEST(ImageGuess, RunsAreNeitherClassesNorImages) {
  for (const char* place : {"run", "runs/lenet-1", "runs/old/lenet-1", "cat/run", "Model"}) {
    const TempFolder folder;
    fill_class(folder, "cat", 4);
    fill_class(folder, "dog", 4);
    write_run(folder, place);
    fill_class(folder, std::string(place) + "/pictures", 3);
    DatasetOptions options = image_options(folder.string());
    options.parameters["val_fraction"] = "0";
    const Dataset data = open_images(options);
    EXPECT_THAT(data.class_names(), ElementsAre("cat", "dog")) << place;
    EXPECT_EQ(data.size(), 8) << place;
    EXPECT_THAT(data.notes(), HasSubstr("not read, as a trainer wrote it: ")) << place;
  }
}

TEST(ImageGuess, RunsBesideOrInsideSplitsAreNotRead) {
  const TempFolder folder;
  for (const char* name : {"train/a", "train/b", "val/a"}) fill_class(folder, name, 2);
  write_run(folder, "train/run");
  write_run(folder, "runs/x");
  EXPECT_THAT(open_images(folder).class_names(), ElementsAre("a", "b"));
  EXPECT_EQ(open_images(folder, "val").class_count(), 2);
}

TEST(ImageGuess, ExplainedPicturesAndCurvesOfRatesAreNotRead) {
  const TempFolder folder;
  fill_class(folder, "cat", 2);
  fill_class(folder, "dog", 2);
  fill(folder, "why", {"1.explained.png", "2.explained.png"});
  fill(folder, "dog", {"1.explained.png"});
  (void)folder.write("search/find_lr.csv", "");
  (void)folder.write("search/find_lr.svg", "");
  const Dataset data = open_images(folder);
  EXPECT_THAT(data.class_names(), ElementsAre("cat", "dog"));
  EXPECT_THAT(data.notes(), AllOf(HasSubstr("as a trainer wrote them: search, why"),
                                  HasSubstr("1 .explained.png")));
}

TEST(ImageGuess, AFolderWithoutImagesIsRefusedButNeverAdvisedToBeRemoved) {
  const TempFolder folder;
  fill_class(folder, "cat", 2);
  fill_class(folder, "dog", 2);
  (void)folder.write("models/last.safetensors", "x");
  EXPECT_THAT(refusal(folder), AllOf(HasSubstr("'models' holds no image"), Not(HasSubstr("remov")),
                                     Not(HasSubstr("delete"))));
}

// ---- Links ----

Dataset all_of(const TempFolder& folder) {
  DatasetOptions options = image_options(folder.string());
  options.parameters["val_fraction"] = "0";
  return open_images(options);
}

TEST(ImageGuess, ALinkToWhatIsReadAnywayAddsNothing) {
  const std::vector<std::pair<std::string, std::string>> links = {
      {"cat/all", ".."},        {"dog/up", "../.."}, {"cat/other", "../dog"}, {"cat/self", "."},
      {"cat/deep", "../dog/x"}, {"kitty", "cat"},    {"apes", "dog"},         {"all", "."}};
  for (const auto& [name, target] : links) {
    const TempFolder folder;
    fill_class(folder, "cat", 3);
    fill_class(folder, "dog", 3);
    fill_class(folder, "dog/x", 2);
    fs::create_directory_symlink(target, folder / name);
    const Dataset data = all_of(folder);
    EXPECT_THAT(data.class_names(), ElementsAre("cat", "dog")) << name;
    EXPECT_EQ(data.size(), 8) << name;
    EXPECT_EQ(data.label(7), 1) << name << ": an image is of the class that holds it";
    EXPECT_EQ(data.label(3), 1) << name;
    EXPECT_THAT(data.notes(), HasSubstr("1 link to what is read already adds nothing: "));
  }
}

TEST(ImageGuess, ALinkBetweenSplitsIsRefused) {
  const TempFolder folder;
  for (const char* name : {"train/a", "train/b", "val/a"}) fill_class(folder, name, 2);
  fs::create_directory_symlink("../train/b", folder / "val/b");
  EXPECT_THAT(refusal(folder, "val"), HasSubstr("are the same folder, by a link"));
  const TempFolder whole;
  for (const char* name : {"train/a", "train/b"}) fill_class(whole, name, 2);
  fs::create_directory_symlink("train", whole / "val");
  EXPECT_THAT(refusal(whole), HasSubstr("'train' and 'val' are the same folder"));
  const TempFolder inside;
  for (const char* name : {"train/a", "train/b", "val/a"}) fill_class(inside, name, 2);
  fs::create_directory_symlink("../../val/a", inside / "train/a/more");
  EXPECT_EQ(open_images(inside).size(), 4) << "images of val are not learned";
}

TEST(ImageGuess, ImagesBesideTheClassFoldersAreCounted) {
  const TempFolder folder;
  fill_class(folder, "cat", 2);
  fill_class(folder, "dog", 2);
  fill(folder, ".", {"stray.png", "other.png"});
  EXPECT_THAT(open_images(folder).notes(),
              HasSubstr("2 images beside the class folders are not read"));
}

}  // namespace
}  // namespace tandem

#endif
