// Columns of lists: quotes around their fields, folds, files that name classes.
#include "plugins/abi.h"
#ifdef TANDEM_TEST_IMAGES

#include <gmock/gmock.h>

#include "tests/data/image_data.h"

namespace tandem {
namespace {

using test::image_options;
using test::open_images;
using test::Parameters;
using test::TempFolder;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class ListColumns : public testing::Test {
 protected:
  void SetUp() override {
    const std::string png = test::encoded(".png", test::gradient(9, 9));
    for (const char* name : {"1", "2", "3", "4", "a, b"}) {
      (void)folder_.write(std::string("p/") + name + ".png", png);
    }
  }
  DatasetOptions options(const std::string& name, const std::string& text,
                         const Parameters& parameters = {}, const std::string& split = "train") {
    DatasetOptions options = image_options(folder_.write(name, text).string(), split);
    options.parameters = parameters;
    return options;
  }
  std::vector<std::string> samples(const std::string& text, const Parameters& parameters,
                                   const std::string& split) {
    const Dataset data = open_images(options("l.csv", text, parameters, split));
    std::vector<std::string> names;
    for (int64_t i = 0; i < data.size(); ++i) {
      names.push_back(std::filesystem::path(data.sample_name(i)).filename().string());
    }
    return names;
  }

  TempFolder folder_;
};

TEST_F(ListColumns, MayBeInSingleQuotes) {
  for (const char* text :
       {"'path','label'\n'p/1.png','cat'\n'p/a, b.png','dog'\n",
        "path,label\n'p/1.png', 'cat'\n'p/a, b.png','dog'\n",
        "path;label\n'p/1.png';'cat'\n'p/2.png';'dog'\n", "'p/1.png','cat'\n'p/2.png','dog'\n",
        "'path','label'\n'p/1.png',\"cat\"\n'p/2.png',\"dog\"\n"}) {
    const Dataset data = open_images(options("l.csv", text, {{"val_fraction", "0"}}));
    EXPECT_THAT(data.class_names(), ElementsAre("cat", "dog")) << text;
    EXPECT_EQ(data.size(), 2) << text;
    EXPECT_THAT(data.notes(), HasSubstr("single quotes around fields")) << text;
  }
  const Dataset names =
      open_images(options("l.csv", "path,label\np/1.png,'tis\np/2.png,rock 'n' roll\n"));
  EXPECT_THAT(names.class_names(), ElementsAre("'tis", "rock 'n' roll"));
  const Dataset caffe = open_images(options("l.txt", "\"p/1.png\" 0\n\"p/a, b.png\" 1\n"));
  EXPECT_THAT(caffe.notes(), HasSubstr("quotes around paths"));
}

constexpr const char* folds =
    "path,label,fold\np/1.png,cat,0\np/2.png,dog,0\np/3.png,cat,1\np/4.png,dog,1\n";

TEST_F(ListColumns, OfFoldsAreThoseOfTheCrossValidation) {
  EXPECT_THAT(samples(folds, {{"fold", "1/2"}}, "val"), ElementsAre("1.png", "2.png"));
  EXPECT_THAT(samples(folds, {{"fold", "1/2"}}, "train"), ElementsAre("3.png", "4.png"));
  EXPECT_THAT(samples(folds, {{"fold", "2/2"}}, "val"), ElementsAre("3.png", "4.png"));
  const std::string own = "path,label,my part\np/1.png,cat,b\np/2.png,dog,a\np/3.png,cat,a\n";
  EXPECT_THAT(samples(own, {{"fold", "1/2"}, {"fold_column", "my part"}}, "val"),
              ElementsAre("2.png", "3.png"));
  EXPECT_THAT(open_images(options("l.csv", folds, {{"fold", "2/2"}})).notes(),
              HasSubstr("those of the column 'fold' of"));
  const Dataset drawn = open_images(options("l.csv", folds));
  EXPECT_THAT(drawn.notes(), HasSubstr("has folds, which --kfold takes"));
  EXPECT_THAT(drawn.class_names(), ElementsAre("cat", "dog"));
  const Dataset none = open_images(options("l.csv", folds, {{"fold_column", "none"}}));
  EXPECT_THAT(none.notes(), Not(HasSubstr("--kfold")));
}

TEST_F(ListColumns, OfFoldsAreNoLabelsWithoutAHeadingOfLabels) {
  const Dataset data = open_images(
      options("l.csv", "image,breed,kfold\np/1.png,pug,0\np/2.png,elk,1\np/3.png,pug,2\n"));
  EXPECT_THAT(data.class_names(), ElementsAre("elk", "pug"));
}

TEST_F(ListColumns, OfFoldsAreAsManyAsTheRun) {
  EXPECT_THAT(test::refusal(options("l.csv", folds, {{"fold", "1/5"}})),
              HasSubstr("the column 'fold' of '" + (folder_ / "l.csv").string() +
                        "' has 2 folds (0, 1): --kfold 2, or the data option fold_column=none"));
  EXPECT_THAT(test::refusal(options("l.csv", folds, {{"fold_column", "fald"}})),
              HasSubstr("has no column 'fald' (did you mean 'fold'?)"));
  EXPECT_THAT(test::refusal(options("l.txt", "p/1.png 0\np/2.png 1\n", {{"fold_column", "x"}})),
              HasSubstr("only CSV has named columns"));
}

TEST_F(ListColumns, AreNamedByFilesOfOtherTrainers) {
  const std::string list = "p/1.png 0\np/2.png 1\n";
  for (const auto& [file, text] : std::vector<std::pair<std::string, std::string>>{
           {"labels.txt", "0 cat\n1 dog\n"},
           {"data.yaml", "nc: 2\nnames: ['cat', 'dog']\n"},
           {"index.json", "{\"cat\": 0, \"dog\": 1}"},
           {"obj.names", "# pets\n\"cat\"\n\"dog\"\n"}}) {
    const std::string names = folder_.write(file, text).string();
    const Dataset data = open_images(options("l.txt", list, {{"classes", names}}));
    EXPECT_THAT(data.class_names(), ElementsAre("cat", "dog")) << file;
  }
  // Who has not named them is told of the file.
  EXPECT_THAT(open_images(options("l.txt", list)).notes(),
              HasSubstr("--data-option classes=" + (folder_ / "labels.txt").string()));
}

// What other programs write around the lines.
TEST_F(ListColumns, AreReadBelowCommentsAndTheSeparatorOfExcel) {
  const Dataset commented = open_images(
      options("l.csv", "# by a tool\npath,label\n\n#p/3.png,cat\np/1.png,cat\np/2.png,dog\n"));
  EXPECT_THAT(commented.class_names(), ElementsAre("cat", "dog"));
  EXPECT_THAT(commented.notes(), HasSubstr("1 line begins with '#' and is left out"));
  const Dataset excel =
      open_images(options("l.csv", "sep=;\npath;label\np/1.png;a, b\np/2.png;dog\n"));
  EXPECT_THAT(excel.class_names(), ElementsAre("a, b", "dog"));
  const Dataset caffe = open_images(options("l.txt", "# a list\np/1.png\t0\np/2.png\t1\n"));
  EXPECT_THAT(caffe.class_names(), ElementsAre("0", "1"));
}

TEST_F(ListColumns, MayHaveLineBreaksInQuotes) {
  const Dataset data = open_images(options("l.csv",
                                           "path,label,comment\n"
                                           "p/1.png,cat,\"two\nlines, \"\"quoted\"\"\n\"\n"
                                           "p/2.png,\"red\nfox\",one\n"));
  EXPECT_THAT(data.class_names(), ElementsAre("cat", "red fox"));
  EXPECT_THAT(test::refusal(options("l.csv", "path,label\np/1.png,\"cat\np/2.png,dog\n")),
              HasSubstr("l.csv:2: a quotation mark is not closed"));
}

TEST_F(ListColumns, OfSplitsAreFoundWithoutAHeading) {
  const std::string text = "TRAIN,p/1.png,cat\nTRAIN,p/2.png,dog\nVALIDATION,p/3.png,cat\n";
  EXPECT_THAT(samples(text, {}, "val"), ElementsAre("3.png"));
}

TEST_F(ListColumns, OfPathsOfAnotherMachineAreFoundBelowTheList) {
  const std::string here = folder_.string();
  for (const std::string& before :
       {std::string("C:\\Users\\me\\"), std::string("/content/drive/data/"),
        std::string("gs://bucket/"), std::string("file:///home/me/"),
        std::string("https://x.org/a/b/")}) {
    const bool is_windows = before.starts_with("C:");
    const std::string folder = is_windows ? "p\\" : "p/";
    const Dataset data = open_images(options(
        "l.csv", "path,label\n" + before + folder + "1.png,cat\n" + before + folder + "2.png,dog\n",
        {{"val_fraction", "0"}}));
    EXPECT_EQ(test::get(data).status, SampleStatus::good) << before << test::get(data).reason;
    EXPECT_THAT(data.notes(), HasSubstr("2 paths begin with '")) << before;
    EXPECT_THAT(data.notes(), HasSubstr("which is not on this machine: taken below '" + here));
  }
  const Dataset files = open_images(options(
      "l.csv", "path,label\nfile://" + here + "/p/1.png,cat\nfile://" + here + "/p/2.png,dog\n"));
  EXPECT_EQ(test::get(files).status, SampleStatus::good);
  EXPECT_THAT(test::refusal(options("l.csv", "path,label\n/x/none.png,cat\n/x/nil.png,dog\n")),
              HasSubstr("there is no file '/x/none.png'"));
}

TEST_F(ListColumns, OfNumbersAreClassesOrValuesByWhatTheyAreCalled) {
  std::string floats = "path,label\n", ages = "path,age\n";
  for (int i = 1; i <= 8; ++i) {
    floats += "p/" + std::to_string(i) + ".png," + (i % 2 == 0 ? "0.0\n" : "1.0\n");
    ages += "p/" + std::to_string(i) + ".png," + std::to_string(20 + 3 * i) + "\n";
  }
  const Dataset classes = open_images(options("l.csv", floats));
  EXPECT_EQ(classes.task(), TANDEM_TASK_CLASSES);
  EXPECT_THAT(classes.notes(), HasSubstr("as 0.0, which are taken as classes (--task regression"));
  EXPECT_EQ(open_images(options("l.csv", ages)).task(), TANDEM_TASK_VALUES);
}

TEST_F(ListColumns, AreLookedForWhereAFolderHasNoClasses) {
  for (const char* name : {"x/img/1.png", "x/img/2.png", "flat/1.png"}) {
    (void)folder_.write(name, test::encoded(".png", test::gradient(9, 9)));
  }
  (void)folder_.write("x/metadata.csv", "file_name,label\n");
  (void)folder_.write("flat/labels.csv", "id,breed\n");
  std::filesystem::create_directories(folder_ / "flat/img");
  EXPECT_THAT(test::refusal(image_options((folder_ / "x").string())),
              HasSubstr("one class only, 'img'; a classifier needs at least two; if '" +
                        (folder_ / "x/metadata.csv").string() + "' has the classes"));
  EXPECT_THAT(test::refusal(image_options((folder_ / "flat").string())),
              testing::AllOf(HasSubstr("holds 1 images but no class folders"),
                             HasSubstr("labels.csv' has the classes")));
}

}  // namespace
}  // namespace tandem

#endif
