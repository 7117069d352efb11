// Caffe's lists and CSV files as data sets: images, splits, and refusals with the line.
#include "plugins/abi.h"
#ifdef TANDEM_TEST_IMAGES

#include <gmock/gmock.h>

#include <set>

#include "core/data/splits.h"
#include "tests/data/image_data.h"
#include "tests/support/sparse_files.h"

namespace tandem {
namespace {

using test::image_options;
using test::message_of;
using test::open_images;
using test::TempFolder;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

// pictures/0.png ... pictures/9.png
void draw_ten(const TempFolder& folder) {
  const std::string png = test::encoded(".png", test::gradient(20, 16));
  for (int i = 0; i < 10; ++i) {
    (void)folder.write("pictures/" + std::to_string(i) + ".png", png);
  }
}

std::string ten_lines(const std::string& separator, const std::string& even,
                      const std::string& odd) {
  std::string text;
  for (int i = 0; i < 10; ++i) {
    text += "pictures/" + std::to_string(i) + ".png" + separator + (i % 2 == 0 ? even : odd) + "\n";
  }
  return text;
}

DatasetOptions list_options(const std::filesystem::path& source, const std::string& split = "train",
                            const test::Parameters& parameters = {}) {
  DatasetOptions options = image_options(source.string(), split);
  options.parameters = parameters;
  return options;
}

std::string refusal_of(const std::string& name, const std::string& text,
                       const test::Parameters& parameters = {}) {
  const TempFolder folder;
  draw_ten(folder);
  const std::string file = folder.write(name, text).string();
  const std::string message = test::refusal(list_options(file, "train", parameters));
  EXPECT_THAT(message, HasSubstr(file));
  return message;
}

std::set<std::string> names(const Dataset& data) {
  std::set<std::string> result;
  for (int64_t i = 0; i < data.size(); ++i) result.insert(data.sample_name(i));
  return result;
}

TEST(ImageList, CaffesListIsReadAndSplitWithTheSeed) {
  const TempFolder folder;
  draw_ten(folder);
  const auto list = folder.write("all.txt", ten_lines(" ", "0", "1"));
  const Dataset train = open_images(list_options(list)),
                val = open_images(list_options(list, "val"));
  EXPECT_EQ(train.type_name(), "image_list");
  EXPECT_EQ(train.size(), 8);
  EXPECT_EQ(val.size(), 2);
  EXPECT_TRUE(train.split_is_drawn());
  EXPECT_THAT(train.class_names(), ElementsAre("0", "1"));
  for (const std::string& name : names(val)) EXPECT_EQ(names(train).count(name), 0U) << name;
  for (int64_t i = 0; i < train.size(); ++i) {
    const std::string name = train.sample_name(i);
    EXPECT_EQ(train.label(i), (name[name.size() - 5] - '0') % 2) << name;
  }
  EXPECT_EQ(test::get(train).status, SampleStatus::good);
}

TEST(ImageList, PathsMayHoldSpacesAndLinesMayEndAsOnWindows) {
  const TempFolder folder;
  const std::string png = test::encoded(".png", test::gradient(20, 16));
  (void)folder.write("my cats/a b.png", png);
  (void)folder.write("c.png", png);
  const auto list = folder.write("all.txt", "\xef\xbb\xbfmy cats/a b.png 0\r\n\r\nc.png\t1\r\n");
  const Dataset data = open_images(list_options(list, "train", {{"val_fraction", "0"}}));
  EXPECT_EQ(data.size(), 2);
  EXPECT_EQ(data.sample_name(0), folder / "my cats/a b.png");
  EXPECT_EQ(test::get(data, 0).status, SampleStatus::good);
}

TEST(ImageList, NumbersKeepTheirMeaningWhereSomeAreMissing) {
  const TempFolder folder;
  draw_ten(folder);
  const auto list = folder.write("all.txt", ten_lines(" ", "1", "3"));
  const Dataset data = open_images(list_options(list));
  EXPECT_THAT(data.class_names(), ElementsAre("0", "1", "2", "3"));
  EXPECT_THAT(data.notes(), HasSubstr("no image of 2 of 4 classes: 0, 2"));
}

TEST(ImageList, AFileOfClassesMayHaveTheirNumbers) {
  const TempFolder folder;
  draw_ten(folder);
  const auto names_of = [&](const char* first, const char* second, const char* text) {
    const auto list = folder.write("all.txt", ten_lines(" ", first, second));
    const auto classes = folder.write("names.txt", text);
    return open_images(list_options(list, "train", {{"classes", classes.string()}})).class_names();
  };
  EXPECT_THAT(names_of("0", "1", "0 tench\n1 goldfish\n"), ElementsAre("tench", "goldfish"));
  EXPECT_THAT(names_of("0", "1", "1: goldfish\n0: tench\n"), ElementsAre("tench", "goldfish"));
  EXPECT_THAT(names_of("1", "2", "1 tench\n2 goldfish\n"), ElementsAre("0", "tench", "goldfish"));
  // Names that begin with a number.
  EXPECT_THAT(names_of("0", "1", "3 doors\n5 doors\n"), ElementsAre("3 doors", "5 doors"));
  EXPECT_THAT(names_of("0", "1", "0a\n1b\n"), ElementsAre("0a", "1b"));
}

TEST(ImageList, AnImageThatIsTwiceInItIsNoted) {
  const TempFolder folder;
  draw_ten(folder);
  const auto notes = [&](const std::string& more) {
    const auto list =
        folder.write("all.csv",
                     "path,label,split\npictures/0.png,a,train\npictures/1.png,b,train\n"
                     "pictures/2.png,a,val\n" +
                         more);
    return open_images(list_options(list)).notes();
  };
  EXPECT_EQ(notes("pictures/0.png,a,train\n").find("all.csv"), std::string::npos);
  EXPECT_THAT(notes("pictures/0.png,b,train\n"),
              HasSubstr("1 line gives an image another label than before "
                        "(line 5: pictures/0.png)"));
  EXPECT_THAT(notes("pictures/1.png,b,val\npictures/0.png,a,val\n"),
              HasSubstr("2 lines have an image of another split (line 5: pictures/1.png)"));
}

TEST(ImageList, AFileOfClassesGivesNumbersNames) {
  const TempFolder folder;
  draw_ten(folder);
  const auto list = folder.write("all.txt", ten_lines(" ", "0", "1"));
  const auto classes = folder.write("synsets.txt", "\xef\xbb\xbfn01 tench\nn02 goldfish\n");
  const Dataset data = open_images(list_options(list, "train", {{"classes", classes.string()}}));
  EXPECT_THAT(data.class_names(), ElementsAre("n01 tench", "n02 goldfish"));
  const auto others = folder.write("others.txt", ten_lines(" ", "0", "2"));
  EXPECT_THAT(test::refusal(list_options(others, "train", {{"classes", classes.string()}})),
              AllOf(HasSubstr("others.txt:2: class 2"), HasSubstr("names classes 0 to 1")));
  (void)folder.write("synsets.txt", std::string("tench\ngold\0fish\n", 16));
  EXPECT_THAT(test::refusal(list_options(list, "train", {{"classes", classes.string()}})),
              HasSubstr("synsets.txt:2: contains a zero byte"));
}

TEST(ImageList, CsvNamesClassesInNaturalOrder) {
  const TempFolder folder;
  draw_ten(folder);
  const auto list = folder.write("all.csv", ten_lines(",", "class 10", "\"class 2, small\""));
  const Dataset data = open_images(list_options(list));
  EXPECT_THAT(data.class_names(), ElementsAre("class 2, small", "class 10"));
}

TEST(ImageList, AHeadingNamesTheColumns) {
  const TempFolder folder;
  draw_ten(folder);
  std::string text = "id,Label,note,Filename,set\n";
  for (int i = 0; i < 10; ++i) {
    text += fmt::format("{},{},,pictures/{}.png,{}\n", i, i % 2 == 0 ? "x" : "y", i,
                        i < 6   ? "train"
                        : i < 8 ? "valid"
                                : "test");
  }
  const auto list = folder.write("all.csv", text);
  EXPECT_EQ(open_images(list_options(list)).size(), 6);
  EXPECT_EQ(open_images(list_options(list, "val")).size(), 2);
  const Dataset test = open_images(list_options(list, "test"));
  EXPECT_EQ(test.sample_name(0), folder / "pictures/8.png");
  EXPECT_FALSE(test.split_is_drawn());
}

TEST(ImageList, SplitsWithoutValidationImagesHaveThemHeldOut) {
  const TempFolder folder;
  draw_ten(folder);
  std::string text = "path,label,split\n";
  for (int i = 0; i < 10; ++i) {
    text += fmt::format("pictures/{}.png,{},train\n", i, i % 2 == 0 ? "x" : "y");
  }
  const auto list = folder.write("all.csv", text);
  const Dataset train = open_images(list_options(list)),
                val = open_images(list_options(list, "val"));
  EXPECT_EQ(train.size(), 8);
  EXPECT_TRUE(train.split_is_drawn());
  EXPECT_THAT(train.notes(), HasSubstr("20 % of every class are held out"));
  for (const std::string& name : names(val)) EXPECT_EQ(names(train).count(name), 0U) << name;
  const Dataset all = open_images(list_options(list, "test", {{"val_fraction", "1"}}));
  EXPECT_EQ(all.size(), 10);
  EXPECT_EQ(all.notes(), "");
}

TEST(ImageList, AFolderMayHaveAListForEachSplit) {
  const TempFolder folder, pictures;
  draw_ten(pictures);
  (void)folder.write("train.txt", ten_lines(" ", "0", "1"));
  (void)folder.write("val.txt", "pictures/3.png 1\n");
  const test::Parameters root{{"root", pictures.string()}};
  EXPECT_EQ(open_images(list_options(folder.path(), "train", root)).size(), 10);
  const Dataset val = open_images(list_options(folder.path(), "val", root));
  EXPECT_EQ(val.size(), 1);
  EXPECT_EQ(val.label(0), 1);
  EXPECT_THAT(open_images(list_options(folder.path(), "test", root)).notes(),
              HasSubstr("no test list"));
}

TEST(ImageList, AModelsClassesAreFoundByName) {
  const TempFolder folder;
  draw_ten(folder);
  DatasetOptions options = list_options(folder.write("all.csv", ten_lines(",", "cat", "dog")));
  options.class_names = {"dog", "bird", "cat"};
  const Dataset data = open_images(options);
  for (int64_t i = 0; i < data.size(); ++i) {
    const std::string name = data.sample_name(i);
    EXPECT_EQ(data.label(i), (name[name.size() - 5] - '0') % 2 == 0 ? 2 : 0);
  }
  options.class_names = {"dogs", "bird"};
  EXPECT_THAT(test::refusal(options), AllOf(HasSubstr("all.csv:"), HasSubstr("is unknown to the "
                                                                             "model")));
}

TEST(ImageList, MissingFilesAreDamagedOnesButNotAllOfThem) {
  const TempFolder folder;
  draw_ten(folder);
  std::filesystem::remove(folder / "pictures/4.png");
  const auto list = folder.write("all.txt", ten_lines(" ", "0", "1"));
  const Dataset data = open_images(list_options(list, "train", {{"val_fraction", "0"}}));
  int missing = 0;
  for (int64_t i = 0; i < data.size(); ++i) {
    const test::Sample sample = test::get(data, i);
    missing += sample.status == SampleStatus::skipped ? 1 : 0;
  }
  EXPECT_EQ(missing, 1);
  EXPECT_THAT(test::refusal(list_options(list, "train", {{"root", "/nowhere"}})),
              AllOf(HasSubstr("there is no file '/nowhere/pictures/"), HasSubstr("root=FOLDER")));
}

TEST(ImageList, PathsThatBeginWithASlashAreBelowRootWhereTheyAreThere) {
  const TempFolder folder;
  draw_ten(folder);
  std::string below, whole;
  for (int i = 0; i < 10; ++i) {
    const std::string line = fmt::format("/pictures/{}.png {}\n", i, i % 2);
    below += line;
    whole += folder.path().string() + line;
  }
  const test::Parameters root{{"root", folder.path().string()}};
  const auto joined = open_images(list_options(folder.write("joined.txt", below), "train", root));
  EXPECT_THAT(joined.notes(), HasSubstr("10 paths begin with '/': taken below root '"));
  EXPECT_EQ(test::get(joined, 0).status, SampleStatus::good);
  const auto kept = open_images(list_options(folder.write("kept.txt", whole), "train", root));
  EXPECT_THAT(kept.notes(),
              HasSubstr("10 paths begin with '/': taken as they are, not below root"));
  EXPECT_EQ(test::get(kept, 0).status, SampleStatus::good);
  EXPECT_THAT(test::refusal(list_options(folder / "joined.txt", "train", {{"root", "/nowhere"}})),
              HasSubstr("root=FOLDER says where its paths begin (here '/nowhere')"));
}

TEST(ImageList, MistakesAreReportedWithTheirLine) {
  EXPECT_THAT(refusal_of("a.txt", "pictures/1.png 0\npictures/2.png\n"),
              HasSubstr("a.txt:2: 'pictures/2.png' must be a path, a space"));
  EXPECT_THAT(refusal_of("a.txt", "pictures/1.png 0\n\npictures/2.png cat\n"),
              AllOf(HasSubstr("a.txt:3: the class 'cat' must be a number"), HasSubstr("CSV")));
  EXPECT_THAT(refusal_of("a.txt", "pictures/1.png -1\n"), HasSubstr("a.txt:1: the class '-1'"));
  EXPECT_THAT(refusal_of("a.csv", "pictures/1.png," + std::string(20'000, 'c') + "\n"),
              HasSubstr("a.csv:1: names a class by 20000 bytes; a name has at most 1000"));
  EXPECT_THAT(refusal_of("a.txt", "pictures/1.png 99999999999999999999\n"), HasSubstr(":1: "));
  EXPECT_THAT(refusal_of("a.txt", "pictures/1.png 2000000000\n"), HasSubstr("absurd"));
  EXPECT_THAT(refusal_of("a.txt", std::string("pictures/1.png\0 1\n", 18)),
              HasSubstr("a.txt:1: contains a zero byte"));
  EXPECT_THAT(refusal_of("a.txt", ""), HasSubstr("names no image"));
  EXPECT_THAT(refusal_of("a.txt", "pictures/1.png 0\n"), HasSubstr("one class only, '0'"));
  EXPECT_THAT(refusal_of("a.csv", "pictures/1.png,x\npictures/2.png,y,z\n"),
              HasSubstr("a.csv:2: has 3 fields instead of 2"));
  EXPECT_THAT(refusal_of("a.csv", "pictures/1.png,\"x\n"),
              HasSubstr("a.csv:1: a quotation mark is not closed"));
  EXPECT_THAT(refusal_of("a.csv", "pictures/1.png\n"), HasSubstr("a comma and the class's name"));
  EXPECT_THAT(refusal_of("a.csv", "path,label,split\npictures/1.png,x,later\n"),
              HasSubstr("a.csv:2: the split 'later' is not one of train, val, test"));
  EXPECT_THAT(refusal_of("a.csv", ",x\n"), HasSubstr("a.csv:1: names no file"));
  EXPECT_THAT(refusal_of("a.csv", "a.png,\n"), HasSubstr("a.csv:1: names no class"));
}

TEST(ImageList, ASplitOfAFolderWrittenAsAListIsTheSame) {
  const TempFolder folder;
  test::fill_class(folder, "images/ca,t \"x\"", 10);
  test::fill_class(folder, "images/dog", 10);
  DatasetOptions options = image_options((folder / "images").string());
  options.seed = 5;
  const Dataset train = open_images(options);
  options.split = "val";
  const Dataset val = open_images(options);
  const auto list = folder.write("split.csv", split_list(train, val));
  const Dataset again = open_images(list_options(list));
  EXPECT_EQ(names(again), names(train));
  EXPECT_EQ(again.class_names(), train.class_names());
  EXPECT_EQ(names(open_images(list_options(list, "val"))), names(val));
}

// Each set alone would be read as labels in one column, numbers, quotes around fields, or the like.
TEST(ImageList, ASplitKeepsClassNamesOfAnyCharacters) {
  const std::vector<std::vector<std::string>> sets{{"a;b", "b;c"},
                                                   {"a|b", "b|c"},
                                                   {"x, y", "y, z"},
                                                   {"[c]", "[d]"},
                                                   {"'e'", "'f'"},
                                                   {"\"g\"", "h \"i\""},
                                                   {"a,'b',c", "d,'e',f"},
                                                   {"1.5", "2.5"},
                                                   {"$5", "$6"},
                                                   {"-1", "0", "1"},
                                                   {"nan", "none"},
                                                   {"=1+1", "@x", "'=2"},
                                                   {" before", "behind ", "\u00a0both\u00a0"},
                                                   {"#1", "# 2"},
                                                   {"tab\tx", "\u202eleft", "\x1b[31mred"},
                                                   {"\\u{9}", "back\\slash"},
                                                   {"train", "path", "label"}};
  for (const std::vector<std::string>& set : sets) {
    const TempFolder folder;
    for (const std::string& name : set) test::fill_class(folder, "images/" + name, 5);
    DatasetOptions options = image_options((folder / "images").string());
    options.parameters["layout"] = "classes";
    const Dataset train = open_images(options);
    options.split = "val";
    const Dataset val = open_images(options);
    const auto list = folder.write("split.csv", split_list(train, val));
    const Dataset again = open_images(list_options(list));
    EXPECT_EQ(again.class_names(), train.class_names());
    EXPECT_EQ(names(again), names(train));
    EXPECT_EQ(names(open_images(list_options(list, "val"))), names(val));
    for (int64_t i = 0; i < again.size(); ++i) EXPECT_EQ(again.label(i), train.label(i)) << set[0];
  }
}

// A list of some of them would be another split.
TEST(ImageList, ASplitInAFolderWithALineBreakInItsPathIsNotWritten) {
  const TempFolder folder;
  test::fill_class(folder, "two\nlines/cat", 4);
  test::fill_class(folder, "two\nlines/dog", 4);
  DatasetOptions options = image_options((folder / "two\nlines").string());
  const Dataset train = open_images(options);
  options.split = "val";
  EXPECT_EQ(split_list(train, open_images(options)), "");
}

TEST(ImageList, RandomBytesAreRefusedOrRead) {
  const TempFolder folder;
  draw_ten(folder);
  cv::RNG random(11);
  const std::string good[] = {ten_lines(" ", "0", "1"), "path,label\n" + ten_lines(",", "a", "b")};
  for (int i = 0; i < 2000; ++i) {
    std::string text = good[i % 2];
    for (int k = random.uniform(1, 6); k > 0; --k) {
      const auto at = static_cast<size_t>(random.uniform(0, static_cast<int>(text.size())));
      switch (random.uniform(0, 4)) {
        case 0:
          text[at] = static_cast<char>(random.uniform(0, 256));
          break;
        case 1:
          text.erase(at, static_cast<size_t>(random.uniform(1, 40)));
          break;
        case 2:
          text.insert(at, "\"");
          break;
        default:
          text.insert(at, text.substr(at, 30));
          break;
      }
      if (text.empty()) break;
    }
    const auto list = folder.write(i % 2 == 0 ? "a.txt" : "a.csv", text);
    const std::string message = message_of([&] { (void)open_images(list_options(list)); });
    if (!message.empty()) {
      EXPECT_THAT(message, StartsWith("data '")) << text;
    }
  }
}

// It has some KB on the disk.
TEST(ImageList, OfGigabytesIsRefusedAtItsFirstZeroByte) {
  const TempFolder folder;
  draw_ten(folder);
  test::write_sparse(folder / "list.txt", ten_lines(" ", "0", "1"), uint64_t{3} << 30);
  const int64_t before = test::peak_memory();
  EXPECT_THAT(test::refusal(list_options(folder / "list.txt")),
              HasSubstr("list.txt:11: contains a zero byte: this is no text file"));
  EXPECT_LT(test::peak_memory() - before, int64_t{1} << 30);
}

}  // namespace
}  // namespace tandem

#endif
