// Cells of a label column that hold a list or a vector, and texts that look like numbers.
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

class LabelCells : public test::ListFixture {};

TEST_F(LabelCells, ThatAreVectorsOfZeroAndOneAreAColumnForEachPlace) {
  for (const Texts& texts :
       {Texts{"\"[1, 0, 0]\"", "\"[0, 1, 1]\"", "\"[0, 0, 0]\""},
        Texts{"[1 0 0]", "[0 1 1]", "[0 0 0]"}, Texts{"[1. 0. 0.]", "[0. 1. 1.]", "[0. 0. 0.]"},
        Texts{"1|0|0", "0|1|1", "0|0|0"}, Texts{"1;0;0", "0;1;1", "0;0;0"},
        Texts{"\"1,0,0\"", "\"0,1,1\"", "\"0,0,0\""}, Texts{"1 0 0", "0 1 1", "0 0 0"}}) {
    const Dataset data = open_images(options("path,label", texts));
    EXPECT_EQ(data.task(), TANDEM_TASK_LABELS) << texts[0];
    EXPECT_THAT(data.class_names(), ElementsAre("label[0]", "label[1]", "label[2]")) << texts[0];
    EXPECT_EQ(values(data, 1), (Values{0, 1, 1})) << texts[0];
    EXPECT_THAT(data.notes(), HasSubstr("column 'label' has 3 numbers in each line, as '"));
  }
}

TEST_F(LabelCells, ThatAreVectorsWithOneOneAreClasses) {
  const Texts texts{"\"[1, 0, 0]\"", "\"[0, 1, 0]\"", "\"[0, 0, 1]\""};
  const Dataset data = open_images(options("path,label", texts));
  EXPECT_EQ(data.task(), TANDEM_TASK_CLASSES);
  EXPECT_EQ(data.label(2), 2);
  const std::string names = folder_.write("names.txt", "cat\ndog\neel\n").string();
  const Dataset named = open_images(options("path,label", texts, {{"classes", names}}));
  EXPECT_THAT(named.class_names(), ElementsAre("cat", "dog", "eel"));
  // A list of validation, and the data of a run, are read in the same way.
  DatasetOptions val = options("path,label", texts);
  val.parameters = {{"val", folder_.write("v.csv", "path,label\n3.png,\"[0, 1, 0]\"\n").string()}};
  val.split = "val";
  EXPECT_EQ(open_images(val).label(0), 1);
  val.parameters["task"] = "labels";
  val.class_names = data.class_names();
  EXPECT_EQ(open_images(val).label(0), 1);
}

TEST_F(LabelCells, ThatAreVectorsOfNumbersAreValues) {
  for (const Texts& texts :
       {Texts{"0.5;1.25", "2.5;3.25"}, Texts{"\"(0.5, 1.25)\"", "\"(2.5, 3)\""},
        Texts{"\"[0.5, 1.25]\"", "\"[2.5, 3]\""}, Texts{"0.5 1.25", "2.5 3"}}) {
    const Dataset data = open_images(options("path,xy", texts));
    EXPECT_EQ(data.task(), TANDEM_TASK_VALUES) << texts[0];
    EXPECT_THAT(data.class_names(), ElementsAre("xy[0]", "xy[1]"));
    EXPECT_EQ(values(data, 0), (Values{0.5, 1.25})) << texts[0];
  }
  Texts places;
  for (int i = 0; i < 12; ++i) places.push_back(fmt::format("\"[{}, {}]\"", 10 * i, 7 * i + 3));
  EXPECT_EQ(open_images(options("path,xy", places)).task(), TANDEM_TASK_VALUES);
  EXPECT_THAT(test::refusal(options("path,xy", {"0.5;1.25", "2.5;3.5", "2.5"})),
              HasSubstr("l.csv:4: column 'xy' has '2.5', where others have 2 numbers"));
}

// Numbers of labels: they repeat in other lines, and none is twice in one.
TEST_F(LabelCells, ThatAreListsOfNumbersOfLabelsAreTags) {
  const Dataset data = open_images(options("path,ids", {"3|7", "1|5", "7|1", "5|3"}));
  EXPECT_EQ(data.task(), TANDEM_TASK_LABELS);
  EXPECT_THAT(data.class_names(), ElementsAre("1", "3", "5", "7"));
  const Dataset two = open_images(options("path,ids", {"\"[0, 1]\"", "[1]", "[0]"}));
  EXPECT_THAT(two.class_names(), ElementsAre("0", "1"));
}

// "(25, 32)" is a range of ages, and 0|1 under such a heading are labels though they hardly repeat.
TEST_F(LabelCells, ThatMayNameClassesOrLabelsAreNoColumns) {
  const Dataset ages = open_images(options("path,age", {"\"(0, 2)\"", "\"(25, 32)\""}, {}, 8));
  EXPECT_EQ(ages.task(), TANDEM_TASK_CLASSES);
  EXPECT_THAT(ages.class_names(), ElementsAre("(0, 2)", "(25, 32)"));
  Texts pairs;
  for (int i = 0; i < 12; ++i) pairs.push_back(fmt::format("{}|{}", 3 * i, 3 * i + 1));
  const Dataset labels = open_images(options("path,labels", pairs));
  EXPECT_EQ(labels.task(), TANDEM_TASK_LABELS);
  EXPECT_EQ(labels.class_count(), 24);
  EXPECT_EQ(open_images(options("path,place", pairs)).task(), TANDEM_TASK_VALUES);
}

TEST_F(LabelCells, OfOneNumberWithMarksOfThousandsAreNotDivided) {
  EXPECT_THAT(test::refusal(options("path,price", {"\"1,000.50\"", "\"2,345.75\""}, {}, 8)),
              HasSubstr("1,000.50"));
}

TEST_F(LabelCells, ThatAreListsMayStandBesidePlainNames) {
  for (const char* list :
       {R"("{""choices"":[""a"",""b""]}")", R"("[""a"",""b""]")", "\"['a', 'b']\"",
        "\"{'a', 'b'}\"", "\"('a', 'b')\"", "['a' 'b']", "\"{a,b}\""}) {
    const Dataset data = open_images(options("path,label", {list, "a", "b"}));
    EXPECT_THAT(data.class_names(), ElementsAre("a", "b")) << list;
    EXPECT_EQ(values(data, 0), (Values{1, 1})) << list;
    EXPECT_EQ(values(data, 1), (Values{1, 0})) << list;
  }
  const Dataset commas = open_images(options("path,label", {"\"['tench, fish', 'b']\"", "b"}));
  EXPECT_THAT(commas.class_names(), ElementsAre("b", "tench, fish"));
  // Brackets around a name are of the name.
  const Dataset names = open_images(options("path,label", {"(none)", "cat"}));
  EXPECT_THAT(names.class_names(), ElementsAre("(none)", "cat"));
  EXPECT_EQ(names.task(), TANDEM_TASK_CLASSES);
}

TEST_F(LabelCells, ThatAreDictionariesAreRefused) {
  for (const char* text : {R"("{""cat"":1,""dog"":0}")", R"("[{""label"":""cat""}]")"}) {
    EXPECT_THAT(test::refusal(options("path,label", {text, "cat"})),
                AllOf(HasSubstr("l.csv:2: column 'label' has '"),
                      HasSubstr("which is more than a list of names")))
        << text;
  }
}

TEST_F(LabelCells, OfWordsAmongNumbersAreRefusedOrSaid) {
  Texts ages;
  for (int i = 0; i < 20; ++i) ages.push_back(std::to_string(20 + i % 10));
  for (const char* word : {"unknown", "90+", "<5"}) {
    ages[7] = word;
    EXPECT_THAT(test::refusal(options("path,age", ages)),
                HasSubstr("l.csv:9: column 'age' has '" + std::string(word) +
                          "' among numbers to predict: write a number or nothing"));
    EXPECT_THAT(open_images(options("path,label", ages)).notes(),
                HasSubstr("column 'label' has numbers and '" + std::string(word)));
  }
  EXPECT_THAT(open_images(options("path,stars", {"1", "2", "other"})).notes(),
              HasSubstr("column 'stars' has numbers and 'other': each is taken as the name"));
}

TEST_F(LabelCells, OfNumbersWithUnitsAreRefusedOrSaid) {
  EXPECT_THAT(test::refusal(options("path,length", {"7.5 cm", "14.5 cm"}, {}, 10)),
              HasSubstr("has '14.5 cm' and the like, as numbers to predict: write them as 1234.5"));
  EXPECT_THAT(test::refusal(options("path,price", {"1'200.50", "1'300.50"}, {}, 10)),
              HasSubstr("has '1'200.50' and the like, as numbers to predict"));
  EXPECT_THAT(open_images(options("path,coin", {"1 euro", "2 euro"}, {}, 10)).notes(),
              HasSubstr("'1 euro' and the like, which are taken as the names of classes"));
}

TEST_F(LabelCells, WithDecimalCommasMayHaveMarksOfThousands) {
  const auto euros = [&](const Texts& texts) { return options("path;price", texts, {}, 0, ';'); };
  const Dataset data = open_images(euros({"950,50", "1.200,25", "1.000.000", "-2.050,75"}));
  EXPECT_EQ(data.task(), TANDEM_TASK_VALUES);
  EXPECT_EQ(values(data, 0), Values{950.5F});
  EXPECT_EQ(values(data, 1), Values{1200.25F});
  EXPECT_EQ(values(data, 2), Values{1000000});
  EXPECT_EQ(values(data, 3), Values{-2050.75F});
  EXPECT_THAT(data.notes(), HasSubstr("1.200,25 is 1200.25"));
  EXPECT_THAT(
      test::refusal(euros({"950", "1.200", "880"})),
      HasSubstr("l.csv:3: '1.200' may be 1200 or a number with a decimal point (others have "
                "no fraction)"));
  EXPECT_THAT(test::refusal(euros({"9,5", "1.200", "3.25"})),
              HasSubstr("l.csv:3: '1.200' may be 1200 or a number with a decimal point (line 4 has "
                        "'3.25')"));
  EXPECT_EQ(values(open_images(euros({"0.125", "1.250", "2.375"})), 1), Values{1.25F});
  EXPECT_EQ(values(open_images(euros({"3,5", "4.25"})), 1), Values{4.25F});
}

}  // namespace
}  // namespace tandem

#endif
