// Lists that name a file several times, by one path or by several, and what is joined from several
// lists.
#include "plugins/abi.h"
#ifdef TANDEM_TEST_IMAGES

#include <gmock/gmock.h>

#include <map>
#include <set>

#include "core/data/pack.h"
#include "tests/data/image_data.h"

namespace tandem {
namespace {

using test::open_images;
using test::Parameters;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class ListRepeats : public testing::Test {
 protected:
  void SetUp() override {
    const std::string png = test::encoded(".png", test::gradient(9, 9));
    for (int i = 0; i < 20; ++i) (void)folder_.write("p/" + std::to_string(i) + ".png", png);
  }
  [[nodiscard]] DatasetOptions options(const std::string& text, const Parameters& parameters = {},
                                       const std::string& split = "train",
                                       const std::string& name = "l.csv") const {
    DatasetOptions result = test::image_options(folder_.write(name, text).string(), split);
    result.parameters = parameters;
    return result;
  }
  [[nodiscard]] std::string notes(const std::string& text,
                                  const Parameters& parameters = {}) const {
    return open_images(options(text, parameters)).notes();
  }
  // A line for each of the 20 files and each way to write its path, class a or b.
  static std::string lines(const std::vector<std::string>& beginnings,
                           const std::string& end = ".png") {
    std::string text;
    for (int i = 0; i < 20; ++i) {
      for (const std::string& begin : beginnings) {
        text += begin + std::to_string(i) + end + (i % 2 == 0 ? ",a\n" : ",b\n");
      }
    }
    return text;
  }
  static std::multiset<std::string> files(const Dataset& data) {
    std::multiset<std::string> result;
    for (int64_t i = 0; i < data.size(); ++i) {
      result.insert(std::filesystem::path(data.sample_name(i)).lexically_normal().string());
    }
    return result;
  }
  // Every line is on one side, and all lines of a file on the same.
  static void expect_apart(const DatasetOptions& train, const DatasetOptions& val, size_t lines) {
    const auto learned = files(open_images(train)), held_out = files(open_images(val));
    EXPECT_EQ(learned.size() + held_out.size(), lines);
    EXPECT_GT(held_out.size(), 0U);
    for (const std::string& file : held_out) EXPECT_EQ(learned.count(file), 0U) << file;
  }

  test::TempFolder folder_;
};

TEST_F(ListRepeats, AllLinesOfAFileAreOnOneSideOfTheSplit) {
  const std::string text = lines({"p/", "p/", "p/"});
  for (const Parameters& parameters :
       {Parameters{}, Parameters{{"fold", "2/5"}}, Parameters{{"task", "multilabel"}}}) {
    expect_apart(options(text, parameters), options(text, parameters, "val"), 60);
  }
  EXPECT_EQ(open_images(options(text, {}, "val")).size(), 12);
  EXPECT_THAT(notes(text), HasSubstr("l.csv': 60 lines name 20 images: all lines of an image are "
                                     "held out, or none"));
  // As many lines of each file change nothing, and a list without them is not spoken of.
  const auto once = files(open_images(options(lines({"p/"}), {}, "val")));
  const auto twice = files(open_images(options(lines({"p/", "p/"}), {}, "val")));
  EXPECT_EQ(std::set(once.begin(), once.end()), std::set(twice.begin(), twice.end()));
  EXPECT_THAT(notes(lines({"p/"})), Not(HasSubstr("lines name")));
}

// Those of a list without repeated files, as runs have it.
TEST_F(ListRepeats, AListWithoutThemKeepsItsSplit) {
  std::multiset<std::string> expected;
  for (const char* name : {"3", "4", "6", "15"}) {
    expected.insert((folder_ / "p" / (std::string(name) + ".png")).string());
  }
  EXPECT_EQ(files(open_images(options(lines({"p/"}), {}, "val"))), expected);
}

TEST_F(ListRepeats, PathsOfOneFileAreTheSameHoweverTheyAreWritten) {
  const std::string here = folder_.string() + "/";
  const std::vector<std::string> ways{"p/", "./p/", "p/../p//", here + "p/", "p\\", "P/"};
  const std::string text = lines(ways);
  expect_apart(options(text), options(text, {}, "val"), 20 * ways.size());
  const std::string caffe =
      "p/0.png 0\n./p/0.png 0\np/1.png 1\np//1.png 1\n"
      "p/2.png 0\n./p/2.png 0\np/3.png 1\np//3.png 1\n";
  expect_apart(options(caffe, {{"fold", "1/2"}}, "train", "l.txt"),
               options(caffe, {{"fold", "1/2"}}, "val", "l.txt"), 8);
  for (const std::string& way : ways) {
    if (way == "P/") continue;  // the disk is not asked for notes
    const std::string two = "path,label,split\np/1.png,a,train\np/2.png,b,train\n";
    EXPECT_THAT(notes(two + way + "1.png,b,train\n"),
                HasSubstr("1 line gives an image another label than before (line 4: " + way))
        << way;
    EXPECT_THAT(notes(two + way + "1.png,a,val\n"),
                HasSubstr("1 line has an image of another split"))
        << way;
  }
}

TEST_F(ListRepeats, FoldsOfAListThatDivideAFileAreNoted) {
  const std::string text = "path,label,fold\np/1.png,a,0\np/2.png,b,0\np/3.png,b,1\n";
  EXPECT_THAT(notes(text + "./p/1.png,a,1\n", {{"fold", "1/2"}}),
              HasSubstr("1 line has an image of another fold (line 5: ./p/1.png)"));
  EXPECT_THAT(notes(text, {{"fold", "1/2"}}), Not(HasSubstr("another fold")));
}

TEST_F(ListRepeats, HeadingsOfJoinedFilesAreNoClasses) {
  const std::string first = "path,label\np/1.png,a\np/2.png,b\n";
  for (const std::string again :
       {"path,label\n", "\"Path\", LABEL\r\n", "\xef\xbb\xbfpath,label\n"}) {
    const Dataset data =
        open_images(options(first + again + "p/3.png,a\n", {{"val_fraction", "0"}}));
    EXPECT_THAT(data.class_names(), ElementsAre("a", "b")) << again;
    EXPECT_EQ(data.size(), 3) << again;
    EXPECT_THAT(data.notes(), HasSubstr("l.csv': 1 line repeats the heading and is left out"));
  }
  // Without image names, and with numbers.
  const Dataset numbers =
      open_images(options("id,age\np/1,1.5\np/2,2.5\nid,age\np/3,1.5\n", {{"val_fraction", "0"}}));
  EXPECT_EQ(numbers.task(), TANDEM_TASK_VALUES);
  EXPECT_THAT(test::refusal(options(first + "label,path\na,p/3.png\n")),
              HasSubstr("l.csv:4: has the headings of line 1 in another order ('label' first)"));
  // A first line that is no heading may be there twice.
  EXPECT_EQ(
      open_images(options("p/1.png,a\np/2.png,b\np/1.png,a\n", {{"val_fraction", "0"}})).size(), 3);
  // The mark at the beginning of a file without a heading.
  const Dataset marked =
      open_images(options("p/1.png,a\n\xef\xbb\xbfp/2.png,b\n", {{"val_fraction", "0"}}));
  EXPECT_EQ(test::get(marked, 1).status, SampleStatus::good);
}

TEST_F(ListRepeats, LinesWithoutAnyTextAreLeftOut) {
  const Dataset data = open_images(
      options("path,label\np/1.png,a\n,\n\"\", \np/2.png,b\n,,,\n", {{"val_fraction", "0"}}));
  EXPECT_EQ(data.size(), 2);
  EXPECT_THAT(test::refusal(options("path,label\np/1.png,a\n,b\n")),
              HasSubstr("l.csv:3: names no file"));
}

TEST_F(ListRepeats, StayTogetherInAPack) {
  PackOptions packing;
  packing.source = options(lines({"p/", "./p/"})).source;
  packing.file = (folder_ / "l.pack").string();
  packing.parameters = {{"val_fraction", "0"}};
  packing.threads = 1;
  (void)pack(test::data_registry(), packing);
  expect_apart(test::image_options(packing.file), test::image_options(packing.file, "val"), 40);
}

}  // namespace
}  // namespace tandem

#endif
