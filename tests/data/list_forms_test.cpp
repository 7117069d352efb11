// Lists as other programs write them: titles, sums, names beside numbers, a line for each label,
// splits by number, other encodings.
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

class ListForms : public test::ListFixture {
 protected:
  [[nodiscard]] Dataset open(const std::string& text, Parameters parameters = {}) const {
    return open_images(list(text, std::move(parameters)));
  }
  [[nodiscard]] std::string refusal(const std::string& text, Parameters parameters = {}) const {
    return test::refusal(list(text, std::move(parameters)));
  }
  [[nodiscard]] Parameters names(const std::string& text) const {
    return {{"classes", folder_.write("names.txt", text).string()}};
  }
};

TEST_F(ListForms, LinesAboveTheHeadingAreLeftOut) {
  for (const char* title : {"Exported from LabTool,v1.2\n", "My data set 2021,\n,\n", "Report\n"}) {
    const Dataset data = open(std::string(title) + "path,label\n0.png,a\n1.png,b\n2.png,a\n");
    EXPECT_THAT(data.class_names(), ElementsAre("a", "b")) << title;
    EXPECT_EQ(data.size(), 3) << title;
    EXPECT_THAT(data.notes(), HasSubstr("l.csv': 1 line above the heading is left out, as '"));
  }
  EXPECT_EQ(open("Report\npath;label\n0.png;a\n1.png;b\n").class_count(), 2);
  EXPECT_THAT(open("path,label\n0.png,a\n1.png,b\n").notes(), Not(HasSubstr("above the heading")));
}

TEST_F(ListForms, ALastLineThatSumsUpIsLeftOut) {
  const Dataset data = open("path,label\n0.png,a\n1.png,b\nTotal,2\n");
  EXPECT_THAT(data.class_names(), ElementsAre("a", "b"));
  EXPECT_THAT(data.notes(), HasSubstr("l.csv': line 4 ('Total') sums up the others"));
}

TEST_F(ListForms, AFileOfNamesNamesTheNumbersOfCsv) {
  const Parameters three = names("cat\ndog\neel\n");
  const Dataset classes = open("path,label\n0.png,2\n1.png,0\n", three);
  EXPECT_THAT(classes.class_names(), ElementsAre("cat", "dog", "eel"));
  EXPECT_EQ(classes.label(1), 2);  // in the order of the classes
  const Dataset words = open("path,label\n0.png,eel\n1.png,cat\n", three);
  EXPECT_EQ(words.label(1), 2);
  EXPECT_THAT(refusal("path,label\n0.png,cow\n1.png,cat\n", three),
              HasSubstr("l.csv:2: class 'cow' is unknown to '"));
  EXPECT_THAT(refusal("path,label\n0.png,3\n1.png,0\n", three), HasSubstr("names classes 0 to 2"));
  const Dataset tags = open("path,tags\n0.png,0|2\n1.png,1\n", three);
  EXPECT_THAT(tags.class_names(), ElementsAre("cat", "dog", "eel"));
  EXPECT_EQ(values(tags, 0), (Values{1, 0, 1}));
  EXPECT_THAT(refusal("path,tags\n0.png,cat|cow\n1.png,eel\n", three),
              HasSubstr("label 'cow' is not in the file of names (classes=)"));
  EXPECT_THAT(
      refusal("path,x,y\n0.png,1,1\n1.png,0,1\n", three),
      AllOf(HasSubstr("the headings name the columns (x, y), and 'cat'"), Not(HasSubstr("model"))));
}

TEST_F(ListForms, NumbersThatFloat32CannotTellApartAreRefused) {
  std::string northing = "path,northing\n", time = "path,time\n", years = "path,time\n";
  for (int i = 0; i < 12; ++i) {
    northing += fmt::format("{}.png,{:.2f}\n", i, 5312345 + 0.01 * i);
    time += fmt::format("{}.png,{}.0\n", i, 1620000000 + 40 * i);
    years += fmt::format("{}.png,{}.0\n", i, 1620000000 + 10000000 * i);
  }
  EXPECT_THAT(refusal(northing),
              AllOf(HasSubstr("column 'northing' has values with"), HasSubstr("has steps of 0.5"),
                    HasSubstr("subtract 5312345 from all of them")));
  EXPECT_THAT(refusal(time), HasSubstr("has steps of 128 there"));
  EXPECT_EQ(open(years).task(), TANDEM_TASK_VALUES);
}

TEST_F(ListForms, AColumnThatHardlyVariesIsTrainedBesideOthers) {
  std::string noise = "path,age,gain\n", seldom = "path,age,place\n";
  for (int i = 0; i < 24; ++i) {
    noise += fmt::format("{}.png,{}.5,{}\n", i, 20 + i, i == 7 ? "5.0000001" : "5");
    seldom += fmt::format("{}.png,{}.5,{}\n", i, 20 + i, i == 7 ? 1000001 : 1000000);
  }
  const Dataset data = open(noise);
  EXPECT_EQ(data.class_count(), 2);
  EXPECT_THAT(data.notes(), AllOf(HasSubstr("column 'gain' has values with a standard deviation"),
                                  HasSubstr("next to nothing of this column is learned")));
  // Floats hold these values as they are.
  EXPECT_EQ(values(open(seldom), 7), (Values{27.5F, 1000001}));
  EXPECT_THAT(open(seldom).notes(), Not(HasSubstr("float32")));
}

TEST_F(ListForms, LinesOfOneImageAreJoinedWhereEachNamesALabel) {
  const Dataset data = open("ImageID,LabelName\n0.png,a\n0.png,b\n1.png,c\n./1.png,a\n2.png,b\n",
                            {{"task", "multilabel"}});
  EXPECT_EQ(data.size(), 3);
  EXPECT_EQ(values(data, 0), (Values{1, 1, 0}));
  EXPECT_EQ(values(data, 1), (Values{1, 0, 1}));
  EXPECT_THAT(data.notes(), AllOf(HasSubstr("2 images have several lines, whose labels are joined"),
                                  Not(HasSubstr("another label"))));
  EXPECT_THAT(open("ImageID,LabelName\n0.png,a\n0.png,b\n").notes(),
              HasSubstr("--task multilabel joins the lines of an image"));
}

TEST_F(ListForms, ConfidenceZeroSaysThatAnImageLacksTheLabel) {
  const std::string text =
      "ImageID,Source,LabelName,Confidence\n0.png,x,a,1\n0.png,x,b,0\n1.png,x,b,1\n2.png,x,a,0\n";
  const Dataset data = open(text, {{"task", "multilabel"}});
  EXPECT_EQ(data.size(), 3);
  EXPECT_EQ(values(data, 0), (Values{1, 0}));
  EXPECT_EQ(values(data, 2), (Values{0, 0}));
  // Of a number it may be a weight.
  EXPECT_EQ(open("path,age,confidence\n0.png,1.5,1\n1.png,2.5,0\n2.png,3.75,1\n").size(), 3);
  const Dataset gaps =
      open("ImageID,LabelName\n0.png,a\n0.png,NaN\n1.png,b\n", {{"task", "multilabel"}});
  EXPECT_EQ(gaps.class_count(), 2);
  const Dataset classes = open(text);
  EXPECT_EQ(classes.size(), 2);
  EXPECT_THAT(classes.notes(), HasSubstr("l.csv': 2 lines say that an image does not have"));
}

TEST_F(ListForms, Utf16NeedsNoByteOrderMark) {
  const std::string plain = "path,label\n0.png,a\n1.png,b\n";
  for (const size_t place : {0, 1}) {
    std::string wide(2 * plain.size(), '\0');
    for (size_t i = 0; i < plain.size(); ++i) wide[2 * i + place] = plain[i];
    EXPECT_THAT(open(wide).class_names(), ElementsAre("a", "b")) << place;
  }
  EXPECT_THAT(refusal(plain + std::string(1, '\0') + "x"), HasSubstr("contains a zero byte"));
}

TEST_F(ListForms, WordsOfTruthBesideNumbersAreZeroAndOne) {
  const Dataset data = open("id,boneage,male\n0.png,180,True\n1.png,12,False\n2.png,94,True\n");
  EXPECT_EQ(data.task(), TANDEM_TASK_VALUES);
  EXPECT_EQ(values(data, 0), (Values{180, 1}));
  EXPECT_EQ(values(data, 1), (Values{12, 0}));
  EXPECT_THAT(data.notes(), HasSubstr("column 'male' has 'False' and the like: 0 and 1"));
  EXPECT_THAT(refusal("id,name,age,male\n0.png,Ann,180,1\n1.png,Bob,12,0\n"),
              HasSubstr("nor all numbers (name): the"));
}

TEST_F(ListForms, ColumnsWithoutAHeadingAreNamedByTheirPlace) {
  const std::string boxes = "0.png,1,2,10,12,a\n1.png,1,2,10,12,b\n";
  EXPECT_THAT(
      refusal(boxes),
      HasSubstr(
          "nor all numbers (6): the data option labels=N,N names those to learn by their places"));
  EXPECT_THAT(open(boxes, {{"labels", "6"}}).class_names(), ElementsAre("a", "b"));
  EXPECT_THAT(refusal(boxes, {{"labels", "7"}}), HasSubstr("the columns are 1 to 6"));
}

TEST_F(ListForms, FilesThatTheListMayMeanAreNamed) {
  const std::string png = test::encoded(".png", test::gradient(9, 9));
  (void)folder_.write("a 0.png", png);
  (void)folder_.write("a 1.png", png);
  const Dataset data = open("path,label\na%200.png,x\na%201.png,y\n");
  EXPECT_EQ(data.sample_name(0), folder_ / "a 0.png");
  EXPECT_THAT(refusal("path,label\n0.jpg,x\n1.jpg,y\n"),
              AllOf(HasSubstr("0.jpg'; its folder has 0.png: write the extension"),
                    Not(HasSubstr("root="))));
  (void)folder_.write("0.jpg", png);
  (void)folder_.write("1.jpg", png);
  EXPECT_THAT(refusal("image_id,label\n0,x\n1,y\n"),
              HasSubstr("its folder has 0.jpg, 0.png: which of them is meant"));
}

TEST_F(ListForms, SplitsMayBeNumbersOrMissing) {
  const std::string lines = "path,y,split\n0.png,a,0\n1.png,b,0\n2.png,a,1\n3.png,b,2\n";
  DatasetOptions numbered = list(lines);
  EXPECT_EQ(open_images(numbered).size(), 2);
  EXPECT_THAT(open_images(numbered).notes(), HasSubstr("0, 1 and 2 are train, val and test"));
  numbered.split = "test";
  EXPECT_EQ(open_images(numbered).sample_name(0), folder_ / "3.png");
  EXPECT_THAT(refusal("path,y,split\n0.png,a,0\n1.png,b,1\n"),
              HasSubstr("l.csv:2: the split '0' is not one of train, val, test (or of 0, 1, 2"));
  EXPECT_THAT(open("path,y,split\n0.png,a,train\n1.png,b,\n2.png,a,val\n").notes(),
              HasSubstr("l.csv': 1 line has no split and is trained on"));
}

TEST_F(ListForms, OtherEncodingsAreSaid) {
  EXPECT_THAT(
      open("path,label\n0.png,\xea\xee\xf2\n1.png,b\n").notes(),
      HasSubstr("l.csv': is not UTF-8 and read as Latin-1, as 'êîò': if the names are wrong"));
  EXPECT_THAT(open("path,label\n0.png,Bär\n1.png,b\n").notes(), Not(HasSubstr("Latin-1")));
}

TEST_F(ListForms, ANameOfWhichNothingIsLeftIsNotSuggested) {
  DatasetOptions model = list("path,label\n0.png,7\n1.png,0\n");
  model.class_names = {"0", "1"};
  EXPECT_THAT(test::refusal(model), AllOf(HasSubstr("'7' is unknown"), Not(HasSubstr("did you"))));
}

}  // namespace
}  // namespace tandem

#endif
