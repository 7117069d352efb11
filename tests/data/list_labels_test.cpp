// Labels of lists that are missing or look like something else, and what is said of further lists.
#include "plugins/abi.h"
#ifdef TANDEM_TEST_IMAGES

#include "tests/data/list_fixture.h"

namespace tandem {
namespace {

using test::open_images;
using test::Parameters;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::UnorderedElementsAre;

class ListLabels : public test::ListFixture {};

TEST_F(ListLabels, OfNoTextOrNanAreMissing) {
  for (const char* gap : {"", "nan", "NaN"}) {
    const std::vector<std::string> texts{"cat", "dog", gap, gap};
    EXPECT_THAT(test::refusal(options("path,label", texts)),
                AllOf(HasSubstr("l.csv:4: names no class in column 'label' ('" + std::string(gap) +
                                "'; 2 of 4 lines name none): the data option missing=skip leaves"),
                      HasSubstr(*gap == '\0' ? "images out" : "out; --task labels takes")))
        << gap;
    EXPECT_THAT(test::refusal(options("", texts)), HasSubstr("l.csv:3: names no class ('")) << gap;
    const Dataset data = open_images(options("path,label", texts, {{"missing", "skip"}}));
    EXPECT_THAT(data.class_names(), ElementsAre("cat", "dog")) << gap;
    EXPECT_EQ(data.size(), 2) << gap;
    EXPECT_THAT(data.notes(), HasSubstr("2 lines of '")) << gap;
  }
  const Dataset named = open_images(options("path,label", {"cat", "Nan"}, {{"task", "labels"}}));
  EXPECT_THAT(named.class_names(), UnorderedElementsAre("Nan", "cat"));
  DatasetOptions model = options("path,label", {"cat", "nan"});
  model.class_names = {"cat", "nan"};
  EXPECT_EQ(open_images(model).label(1), 1);
  // The task of a run is given by the program, which does not make gaps names.
  DatasetOptions learned =
      options("path,label", {"cat", "dog", "nan"}, {{"missing", "skip"}, {"task", "labels"}});
  learned.class_names = {"cat", "dog"};
  EXPECT_EQ(open_images(learned).size(), 2);
}

TEST_F(ListLabels, WithBlanksBehindTheirCommasAreTags) {
  const Dataset data = open_images(options("path,objects", {"\"1, 2\"", "\"2, 3\"", "\"3, 1\""}));
  EXPECT_THAT(data.class_names(), UnorderedElementsAre("1", "2", "3"));
}

TEST_F(ListLabels, OfMasksBesideThemAreRead) {
  std::string mask = "9";
  for (int i = 0; i < 80; ++i) mask += " " + std::to_string(i);
  const Dataset data =
      open_images(options("path,label,EncodedPixels", {"cat," + mask, "dog," + mask}));
  EXPECT_THAT(data.class_names(), UnorderedElementsAre("cat", "dog"));
}

TEST_F(ListLabels, OfAColumnCalledClassNameAreWhole) {
  const Dataset data = open_images(options("path,class_name", {"cat;dog", "cat", "dog"}));
  EXPECT_EQ(data.class_count(), 3);
  EXPECT_THAT(data.notes(), HasSubstr("names one class in each line, whatever stands in it"));
}

TEST_F(ListLabels, OfTheTestSplitAloneAreAskedFor) {
  EXPECT_THAT(test::refusal(options("path,label,split", {",test", ",test"})),
              HasSubstr("every line is of the split test and has no label"));
}

TEST_F(ListLabels, ThatAreWordsForNoValueAreNoted) {
  const Dataset data = open_images(options("path,label", {"cat", "none", "None", "none"}));
  EXPECT_THAT(data.class_names(), UnorderedElementsAre("None", "cat", "none"));
  EXPECT_THAT(data.notes(),
              HasSubstr("l.csv': 2 lines have 'none', which is taken as the name of a class"));
}

TEST_F(ListLabels, OfNanAreNoTags) {
  const Dataset data = open_images(options("path,tags", {"a|b", "NaN", "a"}));
  EXPECT_THAT(data.class_names(), ElementsAre("a", "b"));
  EXPECT_THAT(data.notes(), HasSubstr("1 of 3 images of"));
}

TEST_F(ListLabels, WithDecimalCommasAreNoTags) {
  std::vector<std::string> prices;
  for (const char* euros : {"3", "4", "5"}) {
    for (const char* cents : {"50", "99", "25"}) {
      prices.push_back(std::string("\"") + euros + "," + cents + "\"");
    }
  }
  EXPECT_THAT(test::refusal(options("bild,preis", prices)),
              HasSubstr("column 'preis' has '3,25' and the like, as numbers to predict: "
                        "write them as 1234.5; --task multilabel takes them"));
  EXPECT_EQ(open_images(options("bild,preis", prices, {{"task", "multilabel"}})).task(),
            TANDEM_TASK_LABELS);
  EXPECT_EQ(open_images(options("bild,labels", prices)).task(), TANDEM_TASK_LABELS);
  EXPECT_THAT(test::refusal(options("bild,preis", {"1 200", "2 000", "1 300"})),
              HasSubstr("has '1 200' and the like, as numbers to predict"));
  // Three parts are no number.
  EXPECT_EQ(open_images(options("bild,art", {"\"1,2\"", "\"2,3\"", "\"1,3\"", "\"1,2,3\""})).task(),
            TANDEM_TASK_LABELS);
  EXPECT_THAT(test::refusal(options("bild,preis", {"\"1,000\"", "\"2,000\"", "\"1,000,000\""})),
              HasSubstr("numbers to predict: write them as 1234.5"));
}

// The Human Protein Atlas: numbers of labels with blanks between them.
TEST_F(ListLabels, OfSeveralNumbersNameTheTask) {
  const std::vector<std::string> targets{"16 0", "7 1", "5", "1"};
  EXPECT_THAT(
      test::refusal(options("Id,Target", targets)),
      HasSubstr("column 'Target' has '16 0' and the like, as numbers to predict: write them as "
                "1234.5; --task multilabel takes them as several labels of an image, "));
  EXPECT_THAT(open_images(options("Id,Target", targets, {{"task", "multilabel"}})).class_names(),
              ElementsAre("0", "1", "5", "7", "16"));
}

TEST_F(ListLabels, OfAFurtherListThatAreNotReadAreNoted) {
  const auto notes_of_val = [&](const char* train_heading, const std::vector<std::string>& train,
                                const std::string& val) {
    DatasetOptions all = options(train_heading, train);
    all.parameters = {{"val", folder_.write("v.csv", val).string()}};
    const std::string of_train = open_images(all).notes();
    all.split = "val";
    const auto speaks = [](const std::string& notes) {
      return notes.find("not read") != notes.npos;
    };
    EXPECT_EQ(speaks(open_images(all).notes()), speaks(of_train));
    return of_train;
  };
  EXPECT_THAT(notes_of_val("path,label", {"cat", "dog"}, "path,label,owl\n2.png,cat,1\n"),
              HasSubstr("v.csv' that are not read: owl"));
  EXPECT_THAT(notes_of_val("path,cat,dog", {"1,1", "0,1"}, "path,cat,dog,owl\n2.png,1,0,1\n"),
              HasSubstr("v.csv' that are not read, as training does not have them: owl"));
  EXPECT_THAT(notes_of_val("path,label", {"cat", "dog"}, "path,label\n2.png,cat\n"),
              Not(HasSubstr("not read")));
}

// Kaggle's digits, MNIST as others write it, and FER2013.
TEST_F(ListLabels, ThatArePixelsAreRefused) {
  const auto refusal = [&](const std::string& text) {
    return test::refusal(test::image_options(folder_.write("l.csv", text).string()));
  };
  std::string headings = "label", numbers = "5", pixels = "0";
  for (int i = 0; i < 784; ++i) {
    headings += ",pixel" + std::to_string(i);
    numbers += "," + std::to_string(i % 256);
    pixels += " " + std::to_string(i % 256);
  }
  const std::string end = ": pixels as numbers are not read; write each picture as a file, as PNG";
  EXPECT_THAT(refusal(headings + "\n" + numbers + "\n"), HasSubstr("l.csv:2" + end));
  EXPECT_THAT(refusal(numbers + "\n" + numbers + "\n"), HasSubstr("l.csv:2" + end));
  EXPECT_THAT(refusal("emotion,pixels,Usage\n0," + pixels + ",Training\n"),
              HasSubstr("l.csv:2" + end));
  // Many labels of images are none.
  std::string many = "id";
  for (int i = 0; i < 100; ++i) many += ",c" + std::to_string(i);
  for (const char* id : {"0", "1"}) {
    many += std::string("\n") + id;
    for (int i = 0; i < 100; ++i) many += i % 3 == 0 ? ",1" : ",0";
  }
  EXPECT_EQ(open_images(test::image_options(folder_.write("l.csv", many + "\n").string())).task(),
            TANDEM_TASK_LABELS);
}

TEST_F(ListLabels, BehindAnUnassignedSplitAreSplitByTheSeed) {
  const auto options_of = [&](const std::string& text) {
    return test::image_options(folder_.write("l.csv", text).string());
  };
  const Dataset data =
      open_images(options_of("UNASSIGNED,gs://b/0.png,cat\nUNASSIGNED,gs://b/1.png,dog\n"
                             "UNASSIGNED,gs://b/2.png,cat\nUNASSIGNED,gs://b/3.png,dog\n"));
  EXPECT_THAT(data.class_names(), ElementsAre("cat", "dog"));
  EXPECT_TRUE(data.split_is_drawn());
  EXPECT_THAT(data.notes(), HasSubstr("l.csv': no line has a split (UNASSIGNED)"));
  const Dataset some =
      open_images(options_of("TRAIN,0.png,cat\nUNASSIGNED,1.png,dog\n"
                             "VALIDATION,2.png,cat\n"));
  EXPECT_EQ(some.size(), 2);
  EXPECT_THAT(some.notes(), HasSubstr("l.csv': 1 line has no split and is trained on"));
}

// Of competitions: the files to be judged have no labels.
TEST_F(ListLabels, AreMissingInATestListThatIsNoSplit) {
  const std::string here = folder_.string();
  const auto notes = [&](const std::string& split) {
    return open_images(test::image_options(here, split)).notes();
  };
  (void)folder_.write("train.csv", "id,label\n0,cat\n1,dog\n2,cat\n3,dog\n");
  (void)folder_.write("test.csv", "id\n4\n5\n");
  for (const char* split : {"train", "test"}) {
    EXPECT_THAT(notes(split), HasSubstr("test.csv' has no labels: not a test split")) << split;
  }
  EXPECT_THAT(notes("test"), HasSubstr("no test or val list: tested on the 20 %"));
  std::filesystem::remove(folder_ / "test.csv");
  std::filesystem::remove(folder_ / "train.csv");
  (void)folder_.write("train.txt", "0.png 0\n1.png 1\n2.png 0\n3.png 1\n");
  (void)folder_.write("val.txt", "5.png 0\n6.png 1\n");
  (void)folder_.write("test.txt", "7.png\n8.png\n");
  EXPECT_THAT(notes("test"), AllOf(HasSubstr("test.txt' has no labels: not a test split"),
                                   HasSubstr("no test list: tested on the val list")));
  (void)folder_.write("test.txt", "7.png 0\n8.png 1\n");
  EXPECT_THAT(notes("test"), Not(HasSubstr("no labels")));
}

TEST_F(ListLabels, AreMissingInLinesOfTheTestSplit) {
  const auto open = [&](const std::string& split) {
    return open_images(
        test::image_options(folder_
                                .write("l.csv",
                                       "path,label,split\n0.png,cat,train\n1.png,dog,train\n"
                                       "2.png,cat,val\n3.png,,test\n4.png,,test\n")
                                .string(),
                            split));
  };
  EXPECT_THAT(open("train").notes(),
              HasSubstr("l.csv': the 2 lines of the split test have no labels: not a test split"));
  EXPECT_EQ(open("test").size(), 1);
}

}  // namespace
}  // namespace tandem

#endif
