// Names that look alike and differ in bytes: of folders, in lists, and in files with classes.
#include "plugins/abi.h"
#ifdef TANDEM_TEST_IMAGES

#include <gmock/gmock.h>

#include <array>

#include "core/run/setup/setup.h"
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

const std::string composed = "caf\xc3\xa9", decomposed = "cafe\xcc\x81";

std::string utf16(const std::string& ascii) {
  std::string bytes = "\xff\xfe";
  for (const char c : ascii) bytes += std::string{c, '\0'};
  return bytes;
}

Dataset all_of(const std::filesystem::path& source, const test::Parameters& parameters = {}) {
  DatasetOptions options = image_options(source.string());
  options.parameters = parameters;
  options.parameters["val_fraction"] = "0";
  return open_images(options);
}

TEST(ImageText, ClassesOfTwoSplitsAreTheSameInAnyForm) {
  const std::vector<std::pair<std::string, std::string>> pairs = {
      {composed, decomposed},
      {"A\xcc\x8angstrom", "\xc3\x85ngstrom"},
      {"New York", "New\xc2\xa0York"},
      {"tench", "tench "},
      {"\xed\x95\x9c", "\xe1\x84\x92\xe1\x85\xa1\xe1\x86\xab"}};
  for (const auto& [one, two] : pairs) {
    const TempFolder folder;
    fill_class(folder, "train/" + one, 2);
    fill_class(folder, "train/zoo", 2);
    fill_class(folder, "val/" + two, 2);
    const Dataset train = open_images(folder), val = open_images(folder, "val");
    EXPECT_EQ(train.class_names(), val.class_names()) << one;
    EXPECT_NE(train.class_names().at(static_cast<size_t>(*val.label(0))), "zoo") << one;
    EXPECT_EQ(test::get(val).status, SampleStatus::good) << "its path is as on the disk";
  }
}

TEST(ImageText, TwoFoldersOfOneNameAreRefused) {
  const TempFolder folder;
  for (const std::string& name : {composed, decomposed, std::string("dog")}) {
    fill_class(folder, name, 2);
  }
  EXPECT_THAT(refusal(folder), HasSubstr("two class folders are called '" + composed + "'"));
}

TEST(ImageText, AModelsClassesAreFoundInAnyForm) {
  const TempFolder folder;
  fill_class(folder, "test/" + composed, 2);
  DatasetOptions options = image_options(folder.string(), "test");
  options.class_names = {"dog", decomposed};
  const Dataset data = open_images(options);
  EXPECT_EQ(data.label(0), 1);
  EXPECT_THAT(data.class_names(), ElementsAre("dog", decomposed)) << "as the model has them";
}

TEST(ImageText, ClassesThatDifferInCaseAloneAreNamed) {
  const TempFolder folder;
  for (const char* name : {"Cat", "cat", "dog"}) fill_class(folder, name, 2);
  EXPECT_THAT(all_of(folder.path()).notes(), HasSubstr("classes 'Cat' and 'cat' differ in case"));
}

// ---- Lists ----

TEST(ImageText, AListIsReadHoweverItWasSaved) {
  const TempFolder folder;
  fill_class(folder, "p", 4);
  const std::string lines = "p/1.jpg 0\np/2.jpg 1\np/3.jpg 0\np/4.jpg 1\n";
  std::string windows, old_mac, blanks;
  for (const char c : lines) {
    windows += c == '\n' ? std::string("\r\n") : std::string(1, c);
    old_mac += c == '\n' ? '\r' : c;
    blanks += c == ' '    ? std::string("\xc2\xa0")
              : c == '\n' ? std::string(" \t\n")
                          : std::string(1, c);
  }
  for (const std::string& text :
       {lines, "\xef\xbb\xbf" + windows, old_mac, blanks, utf16(windows)}) {
    EXPECT_EQ(all_of(folder.write("list.txt", text)).size(), 4) << text;
  }
  const std::string csv = "path,label\np/1.jpg,cat\np/2.jpg,dog\np/3.jpg,cat \n";
  for (const std::string& text : {csv, utf16(csv)}) {
    const Dataset data = all_of(folder.write("list.csv", text));
    EXPECT_THAT(data.class_names(), ElementsAre("cat", "dog"));
  }
}

TEST(ImageText, FilesAreFoundWhereAListSpellsThemOtherwise) {
  const TempFolder folder;
  const std::string png = test::encoded(".png", test::gradient(9, 9));
  for (const std::string& name : {std::string("A/One.PNG"), "A/" + composed + ".png",
                                  std::string("A/b c.png"), std::string("A/0a1f.png")}) {
    (void)folder.write(name, png);
  }
  const std::vector<std::pair<std::string, std::string>> lists = {
      {"A/One.png 0\nA/0a1f.png 1\n", "A/One.PNG"},
      {"a/one.Png 0\nA/0a1f.png 1\n", "A/One.PNG"},
      {"A/" + decomposed + ".png 0\nA/0a1f.png 1\n", "A/" + composed + ".png"},
      {"A\\b c.png 0\r\nA\\0a1f.png 1\r\n", "A/b c.png"},
      {"A/b\xc2\xa0"
       "c.png 0\nA/0a1f.png 1\n",
       "A/b c.png"},
      {"/A/One.PNG 0\n/A/0a1f.png 1\n", "A/One.PNG"},
      {"A/0A1F 0\nA/One.PNG 1\n", "A/0a1f.png"}};
  for (const auto& [text, first] : lists) {
    const Dataset data = all_of(folder.write("list.txt", text));
    EXPECT_EQ(data.sample_name(0), (folder / first).string()) << text;
    EXPECT_EQ(test::get(data, 0).status, SampleStatus::good) << text;
    EXPECT_EQ(test::get(data, 1).status, SampleStatus::good) << text;
    const bool differs = !text.starts_with("A/b\xc2\xa0");
    if (differs) {
      EXPECT_THAT(data.notes(), HasSubstr("spelled otherwise on the disk: '")) << text;
    }
  }
}

TEST(ImageText, AnAmbiguousOrMissingPathStaysMissing) {
  const TempFolder folder;
  const std::string png = test::encoded(".png", test::gradient(9, 9));
  for (const char* name : {"a.PNG", "a.Png", "b.png"}) (void)folder.write(name, png);
  const Dataset data = all_of(folder.write("list.txt", "a.png 0\nb.png 1\nc.png 0\n"));
  EXPECT_EQ(test::get(data, 0).status, SampleStatus::skipped);
  EXPECT_EQ(test::get(data, 1).status, SampleStatus::skipped) << "c.png, of the same class";
  EXPECT_EQ(test::get(data, 2).status, SampleStatus::good);
  EXPECT_THAT(data.notes(), testing::Not(HasSubstr("spelled otherwise")));
}

TEST(ImageText, ListsOfSplitsAreKnownByTheirUsualNames) {
  for (const auto& [train, val] : {std::pair{"Train.txt", "Val.txt"},
                                   {"train_list.txt", "dev.lst"},
                                   {"TRAINING.csv", "validation_set.csv"},
                                   {"trainset.txt", "evalset.txt"}}) {
    const TempFolder folder;
    fill_class(folder, "p", 4);
    const bool is_csv = std::string(train).ends_with(".csv");
    const char gap = is_csv ? ',' : ' ';
    (void)folder.write(train, fmt::format("p/1.jpg{0}0\np/2.jpg{0}1\np/3.jpg{0}0\n", gap));
    (void)folder.write(val, fmt::format("p/4.jpg{}1\n", gap));
    EXPECT_EQ(open_images(folder).size(), 3) << train;
    EXPECT_EQ(open_images(folder, "val").size(), 1) << val;
  }
  const TempFolder folder;
  fill_class(folder, "p", 2);
  for (const char* name : {"train.txt", "training.txt"}) {
    (void)folder.write(name, "p/1.jpg 0\np/2.jpg 1\n");
  }
  EXPECT_THAT(refusal(folder), HasSubstr("would all be the list of the split 'train'"));
}

TEST(ImageText, SplitsInAColumnAreKnownByTheirUsualNames) {
  const TempFolder folder;
  fill_class(folder, "p", 4);
  for (const auto& [train, val] : {std::pair{"Training", "Validation"},
                                   {"TRAIN", "Dev"},
                                   {"train_set", "eval"},
                                   {"Training", "PublicTest"}}) {
    const auto list = folder.write(
        "all.csv",
        fmt::format("path,label,split\np/1.jpg,a,{0}\np/2.jpg,b,{0}\np/3.jpg,a,{1}\n", train, val));
    EXPECT_EQ(open_images(image_options(list.string())).size(), 2) << train;
    EXPECT_EQ(open_images(image_options(list.string(), "val")).size(), 1) << val;
  }
}

// Of 1 to 4.jpg the first three are for training, in whatever columns.
TEST(ImageText, ColumnsOfSplitsAreKnownByNameContentOrTruth) {
  const TempFolder folder;
  fill_class(folder, "p", 4);
  const std::vector<std::array<std::string, 3>> columns = {{"Usage", "Training", "PublicTest"},
                                                           {"partition", "train", "val"},
                                                           {"part of", "Train", "Dev"},
                                                           {"is_valid", "False", "True"},
                                                           {"is_train", "1", "0"},
                                                           {"is_training_image", "1", "0"}};
  for (const auto& [name, train, val] : columns) {
    const auto list = folder.write(
        "all.csv", fmt::format("{0},image name,Label\n{1},p/1.jpg,a\n{1},p/2.jpg,b\n{1},p/3.jpg,a\n"
                               "{2},p/4.jpg,b\n",
                               name, train, val));
    const Dataset data = open_images(image_options(list.string()));
    EXPECT_EQ(data.size(), 3) << name;
    EXPECT_THAT(data.class_names(), ElementsAre("a", "b")) << name;
    EXPECT_THAT(data.notes(), AllOf(HasSubstr("the path is read from the column 'image name'"),
                                    HasSubstr("the split from '" + name + "'")));
    EXPECT_EQ(open_images(image_options(list.string(), "val")).size(), 1) << name;
  }
}

TEST(ImageText, AColumnIdIsTheClassWhereThereIsNoOther) {
  const TempFolder folder;
  fill_class(folder, "p", 4);
  const auto list =
      folder.write("all.csv", "Image,Id\np/1.jpg,w_1\np/2.jpg,w_2\np/3.jpg,w_1\np/4.jpg,w_2\n");
  EXPECT_THAT(all_of(list).class_names(), ElementsAre("w_1", "w_2"));
  const auto turned = folder.write("all.txt", "0 p/1.jpg\n1 p/2.jpg\n");
  EXPECT_THAT(refusal(image_options(turned.string())), HasSubstr("the path comes first"));
}

TEST(ImageText, AHeadingIsNeitherAnImageNorAClass) {
  const TempFolder folder;
  const std::string png = test::encoded(".png", test::gradient(9, 9));
  for (const char* name : {"A17", "B2", "C9", "D4"})
    (void)folder.write(name + std::string(".png"), png);
  for (const char* heading : {"Specimen,label", "label,Specimen", "id,Species", "image_id;Art",
                              "Specimen,Class", "Specimen,ClassId"}) {
    const bool turned = std::string(heading).starts_with("label");
    const char gap = std::string(heading).find(';') == std::string::npos ? ',' : ';';
    std::string text = std::string(heading) + "\n";
    for (const auto& [name, species] :
         {std::pair{"A17", "iris"}, {"B2", "lily"}, {"C9", "iris"}, {"D4", "lily"}}) {
      text += fmt::format("{}{}{}\n", turned ? species : name, gap, turned ? name : species);
    }
    const Dataset data = all_of(folder.write("all.csv", text));
    EXPECT_THAT(data.class_names(), ElementsAre("iris", "lily")) << heading;
    EXPECT_EQ(data.size(), 4) << heading;
    EXPECT_EQ(test::get(data, 0).status, SampleStatus::good) << "found without its extension";
  }
  const auto doubtful = folder.write("all.csv", "Specimen,Species\nA17,iris\nB2,lily\nC9,iris\n");
  EXPECT_THAT(test::refusal(image_options(doubtful.string())),
              HasSubstr("'Specimen,Species' is a heading or an image"));
}

TEST(ImageText, WeightsOfClassesAreFoundByTheirNamesInAnyForm) {
  const TempFolder folder;
  fill_class(folder, composed, 2);
  fill_class(folder, "New York", 2);
  const Dataset data = all_of(folder.path());
  for (const std::string& text :
       {composed + " 2\nNew York 3\n", "\xef\xbb\xbf" + decomposed + ",2\r\nNew\xc2\xa0York,3 \r\n",
        "New York\t3\r" + decomposed + "\t2\r"}) {
    const auto file = folder.write("weights.txt", text);
    EXPECT_THAT(read_class_weights(file.string(), data), ElementsAre(3, 2)) << text;
  }
}

}  // namespace
}  // namespace tandem

#endif
