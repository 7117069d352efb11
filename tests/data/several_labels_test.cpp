// Lists and CSV files whose images have several labels, or numbers to predict: what is taken for
// what, and refusals with the line.
#include "plugins/abi.h"
#ifdef TANDEM_TEST_IMAGES

#include <gmock/gmock.h>

#include "core/data/dataset_statistics.h"
#include "core/data/splits.h"
#include "tests/data/image_data.h"

namespace tandem {
namespace {

using test::image_options;
using test::open_images;
using test::TempFolder;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

using Values = std::vector<float>;

// A list of ten pictures 0.png ... 9.png, line i with rows[i % rows.size()] behind its path.
struct Drawn {
  Drawn(const std::string& name, const std::string& heading, std::vector<std::string> rows) {
    const std::string png = test::encoded(".png", test::gradient(20, 16));
    std::string text = heading;
    for (size_t i = 0; i < 10; ++i) {
      (void)folder.write(std::to_string(i) + ".png", png);
      text += std::to_string(i) + ".png" + rows[i % rows.size()] + "\n";
    }
    options = image_options(folder.write(name, text).string());
    options.parameters = {{"val_fraction", "0"}};
  }
  Drawn& with(const std::string& name, const std::string& value) {
    options.parameters[name] = value;
    return *this;
  }
  [[nodiscard]] Dataset open() const { return open_images(options); }
  [[nodiscard]] std::string refusal() const { return test::refusal(options); }

  TempFolder folder;
  DatasetOptions options;
};

Values values_of(const Dataset& data, int64_t index) {
  Values values(size_t(data.class_count()));
  data.values(index, values.data());
  return values;
}

TEST(SeveralLabels, AreTheNumbersBehindAPathInAList) {
  const Dataset data = Drawn("all.txt", "", {" 1 0 1", " 0  0\t1"}).open();
  EXPECT_EQ(data.task(), TANDEM_TASK_LABELS);
  EXPECT_THAT(data.class_names(), ElementsAre("0", "1", "2"));
  EXPECT_EQ(data.size(), 10);
  EXPECT_EQ(values_of(data, 0), (Values{1, 0, 1}));
  EXPECT_EQ(values_of(data, 1), (Values{0, 0, 1}));
  EXPECT_EQ(data.label(1), 0);
  EXPECT_THAT(data.notes(), HasSubstr("3 columns of 0 and 1: several labels"));
}

TEST(SeveralLabels, AreColumnsOfACsvWithTheirNames) {
  const Dataset data =
      Drawn("all.csv", "Image,cat,dog,tree\n", {",1,0,1", ",0,1,1", ",0,0,0"}).open();
  EXPECT_EQ(data.task(), TANDEM_TASK_LABELS);
  EXPECT_THAT(data.class_names(), ElementsAre("cat", "dog", "tree"));
  EXPECT_EQ(values_of(data, 1), (Values{0, 1, 1}));
  EXPECT_EQ(values_of(data, 2), (Values{0, 0, 0}));
}

TEST(SeveralLabels, MayBeWrittenAsMinusOneAndOneOrAsTruth) {
  const Dataset celeba =
      Drawn("list_attr.txt", "10\nBald Smiling Young\n", {" -1  1  1", "  1 -1 -1"}).open();
  EXPECT_THAT(celeba.class_names(), ElementsAre("Bald", "Smiling", "Young"));
  EXPECT_EQ(celeba.size(), 10);
  EXPECT_EQ(values_of(celeba, 0), (Values{0, 1, 1}));
  const Dataset words = Drawn("all.csv", "path,a,b\n", {",True,yes", ",false,no"}).open();
  EXPECT_EQ(values_of(words, 0), (Values{1, 1}));
  EXPECT_EQ(values_of(words, 1), (Values{0, 0}));
}

TEST(SeveralLabels, MayBeNamedInOneColumn) {
  const Dataset xray = Drawn("all.csv", "Image Index,Finding Labels,Patient Age\n",
                             {",Mass|Edema,58", ",No Finding,61"})
                           .open();
  EXPECT_THAT(xray.class_names(), ElementsAre("Edema", "Mass", "No Finding"));
  EXPECT_EQ(values_of(xray, 0), (Values{1, 1, 0}));
  EXPECT_THAT(xray.notes(), AllOf(HasSubstr("not read: Patient Age"), HasSubstr("'|'")));
  const Dataset planet =
      Drawn("train.csv", "image_name,tags\n", {",clear primary", ",clear", ",haze primary"}).open();
  EXPECT_THAT(planet.class_names(), ElementsAre("clear", "haze", "primary"));
  EXPECT_EQ(values_of(planet, 2), (Values{0, 1, 1}));
  const Dataset quoted = Drawn("all.csv", "", {",\"a, b\"", ",\"b, c\"", ",\"a, c\"", ",a"}).open();
  EXPECT_THAT(quoted.class_names(), ElementsAre("a", "b", "c"));
  const Dataset python = Drawn("all.csv", "path,labels\n", {",\"['x', 'y']\"", ",['y']"}).open();
  EXPECT_EQ(values_of(python, 1), (Values{0, 1}));
}

TEST(SeveralLabels, ImagesWithoutALabelAreCounted) {
  const Dataset data = Drawn("all.csv", "path,tags\n", {",a|b", ","}).open();
  EXPECT_EQ(values_of(data, 1), (Values{0, 0}));
  EXPECT_THAT(data.notes(), HasSubstr("5 of 10 images"));
}

// Names of ImageNet's synsets have commas, and classes may have spaces.
TEST(SeveralLabels, NamesWithCommasAndSpacesStayClasses) {
  const Dataset synsets =
      Drawn("all.csv", "path,label\n", {",\"tench, Tinca tinca\"", ",\"great gray owl, owl\""})
          .open();
  EXPECT_EQ(synsets.task(), TANDEM_TASK_CLASSES);
  EXPECT_EQ(synsets.class_count(), 2);
  EXPECT_EQ(Drawn("all.csv", "path,label\n", {",red car", ",blue car", ",red house", ",blue house"})
                .open()
                .task(),
            TANDEM_TASK_CLASSES);
}

TEST(SeveralLabels, ColumnsOfWhichOneIsOneAreClassesUnlessToldOtherwise) {
  Drawn drawn("all.csv", "image,MEL,NV,BCC\n", {",1.0,0.0,0.0", ",0.0,1.0,0.0", ",0.0,0.0,1.0"});
  const Dataset classes = drawn.open();
  EXPECT_EQ(classes.task(), TANDEM_TASK_CLASSES);
  EXPECT_THAT(classes.class_names(), ElementsAre("MEL", "NV", "BCC"));
  EXPECT_EQ(classes.label(0), 0);
  EXPECT_EQ(classes.label(9), 2);
  EXPECT_THAT(classes.notes(), HasSubstr("--task multilabel"));
  EXPECT_EQ(drawn.with("task", "multilabel").open().task(), TANDEM_TASK_LABELS);
  EXPECT_THAT(Drawn("all.csv", "image,a,b\n", {",1,1", ",0,1"}).with("task", "labels").refusal(),
              HasSubstr("all.csv:2: has 1 in 'a' and 'b'"));
}

TEST(NumbersToPredict, MayHaveDecimalCommasBetweenSemicolons) {
  for (const char* heading : {"path;age;height\n", ""}) {
    const Dataset data = Drawn("all.csv", heading, {";41,5;1,80", ";3;2"}).open();
    EXPECT_EQ(data.task(), TANDEM_TASK_VALUES);
    EXPECT_EQ(values_of(data, 0), (Values{41.5F, 1.8F}));
    EXPECT_EQ(values_of(data, 1), (Values{3, 2}));
    EXPECT_THAT(data.notes(), HasSubstr("read as points"));
  }
  // Here the semicolon divides labels, and the comma fields.
  EXPECT_THAT(Drawn("all.csv", "", {",a;b", ",b"}).open().class_names(), ElementsAre("a", "b"));
}

TEST(NumbersToPredict, WrittenWithSignsAreNotClasses) {
  for (const char* row : {",$12.50", ",12%", ",\"1,200\"", ",\u20ac 5"}) {
    EXPECT_THAT(Drawn("all.csv", "path,price\n", {row, ",$3"}).refusal(),
                AllOf(HasSubstr("as numbers to predict: write them as"), HasSubstr("'price'")))
        << row;
  }
  const Dataset classes =
      Drawn("all.csv", "path,price\n", {",$12.50", ",$3"}).with("task", "labels").open();
  EXPECT_EQ(classes.task(), TANDEM_TASK_CLASSES);
}

TEST(NumbersToPredict, WithATextAmongThemAreRefusedWithItsLine) {
  EXPECT_THAT(Drawn("all.csv", "path,age\n", {",1.5", ",2.5", ",inf", ",3.5"}).refusal(),
              HasSubstr("all.csv:4: column 'age' has 'inf' among numbers to predict"));
  // Classes may be numbers and words.
  EXPECT_EQ(Drawn("all.csv", "path,kind\n", {",1", ",2", ",other"}).open().class_count(), 3);
}

TEST(SeveralLabels, WholeNumbersThatAreTakenAsClassesAreSaid) {
  EXPECT_THAT(Drawn("all.csv", "path,stars\n", {",1", ",2", ",3"}).open().notes(),
              HasSubstr("'stars' has 3 different whole numbers, which are taken as classes"));
  EXPECT_EQ(Drawn("all.csv", "path,label\n", {",1", ",2", ",3"}).open().notes().find("whole"),
            std::string::npos);
}

TEST(SeveralLabels, TextsThatHardlyRepeatAreNamedAsClasses) {
  const auto texts = [](int different) {
    std::vector<std::string> rows;
    for (int i = 0; i < 10; ++i) rows.push_back(",text " + std::to_string(i % different));
    return rows;
  };
  EXPECT_THAT(Drawn("all.csv", "path,caption\n", texts(9)).open().notes(),
              HasSubstr("'caption' has 9 different texts for 10 images"));
  EXPECT_EQ(Drawn("all.csv", "path,caption\n", texts(5)).open().notes().find("different texts"),
            std::string::npos);
}

TEST(NumbersToPredict, AreFloatsInOneColumnOrInSeveral) {
  const Dataset age = Drawn("all.csv", "path,age\n", {",41.5", ",3", ",70.25"}).open();
  EXPECT_EQ(age.task(), TANDEM_TASK_VALUES);
  EXPECT_THAT(age.class_names(), ElementsAre("age"));
  EXPECT_EQ(values_of(age, 0), Values{41.5F});
  EXPECT_THAT(age.notes(), HasSubstr("--task labels"));
  const Dataset landmarks = Drawn("all.txt", "", {" 10 20 30.5 40", " 1 2 3 4e1"}).open();
  EXPECT_EQ(landmarks.task(), TANDEM_TASK_VALUES);
  EXPECT_EQ(values_of(landmarks, 1), (Values{1, 2, 3, 40}));
}

TEST(NumbersToPredict, AreWholeOnesOnlyIfTheyAreTooManyForClasses) {
  EXPECT_EQ(Drawn("all.txt", "", {" 0", " 3"}).open().task(), TANDEM_TASK_CLASSES);
  EXPECT_EQ(Drawn("all.csv", "path,label\n", {",1", ",2"}).open().task(), TANDEM_TASK_CLASSES);
  Drawn many("all.txt", "", {" 0"});
  std::string text = "path,age\n";
  for (int i = 0; i < 30; ++i) text += std::to_string(i % 10) + ".png," + std::to_string(i) + "\n";
  many.options.source = many.folder.write("ages.csv", text).string();
  EXPECT_EQ(many.open().task(), TANDEM_TASK_VALUES);
  EXPECT_EQ(many.with("task", "labels").open().class_count(), 30);
  std::string identities = "path,identity_id\n";
  for (int i = 0; i < 150; ++i) identities += fmt::format("{}.png,{}\n", i % 10, i % 30);
  many.options.source = many.folder.write("identities.csv", identities).string();
  EXPECT_EQ(many.with("task", "auto").open().task(), TANDEM_TASK_CLASSES);
  EXPECT_EQ(Drawn("all.txt", "", {" 0", " -3"}).with("task", "regression").open().task(),
            TANDEM_TASK_VALUES);
}

TEST(NumbersToPredict, AreScaledByMeanAndDeviationOfTheTraining) {
  Dataset data = Drawn("all.csv", "path,x\n", {",1.5", ",3.5"}).open();
  const TargetScale scale = measure_target_scale(data);
  EXPECT_THAT(scale.means, ElementsAre(2.5));
  EXPECT_THAT(scale.deviations, ElementsAre(1));
  data.set_target_scale({{2.5}, {0.5}});
  float target = 0;
  data.targets(0, &target);
  EXPECT_EQ(target, -2);
  EXPECT_EQ(values_of(data, 0), Values{1.5F});
}

TEST(LabelColumns, ThatLackValuesAreRefusedOrLeftOut) {
  Drawn drawn("all.csv", "path,x,y\n", {",1.5,2", ",,3", ",4,NaN"});
  EXPECT_THAT(drawn.refusal(), AllOf(HasSubstr("all.csv:3: column 'x' has no value"),
                                     HasSubstr("6 of 10 lines"), HasSubstr("missing=skip")));
  const Dataset data = drawn.with("missing", "skip").open();
  EXPECT_EQ(data.size(), 4);
  EXPECT_THAT(data.notes(), HasSubstr("6 lines"));
  const Dataset zero =
      Drawn("all.csv", "path,a,b\n", {",1,", ",1,1", ",,0"}).with("missing", "zero").open();
  EXPECT_EQ(values_of(zero, 0), (Values{1, 0}));
  EXPECT_THAT(zero.notes(), HasSubstr("missing=zero"));
}

TEST(LabelColumns, ThatAreNeitherLabelsNorNumbersAreRefusedWithTheirNames) {
  Drawn drawn("all.csv", "Path,Sex,Age,Edema,Mass\n", {",Male,61,1,0", ",Female,50,1,1"});
  EXPECT_THAT(drawn.refusal(), AllOf(HasSubstr("Sex"), HasSubstr("labels=COLUMN,COLUMN")));
  const Dataset data = drawn.with("labels", "Mass,Edema").open();
  EXPECT_THAT(data.class_names(), ElementsAre("Mass", "Edema"));
  EXPECT_EQ(values_of(data, 0), (Values{0, 1}));
  EXPECT_THAT(drawn.with("labels", "Mas").refusal(), HasSubstr("did you mean 'Mass'"));
  EXPECT_THAT(Drawn("all.csv", "path,a,b\n", {",1,-1", ",0,1", ",-1,0"}).refusal(),
              HasSubstr("0, 1 and -1"));
  EXPECT_THAT(Drawn("all.txt", "", {" 1 0 1", " 1 0"}).refusal(),
              AllOf(HasSubstr("all.txt:1: has 3 numbers"), HasSubstr("CSV")));
}

TEST(LabelColumns, AreFoundByNameInOtherLists) {
  Drawn train("train.csv", "path,cat,dog\n", {",1,0", ",1,1", ",0,0"});
  (void)train.folder.write("val.csv", "path,dog,cat\n0.png,1,0\n1.png,0,0\n");
  DatasetOptions options = image_options(train.folder.string(), "val");
  const Dataset val = open_images(options);
  EXPECT_EQ(val.task(), TANDEM_TASK_LABELS);
  EXPECT_EQ(values_of(val, 0), (Values{0, 1}));
  (void)train.folder.write("val.csv", "path,dog\n0.png,1\n");
  EXPECT_THAT(test::refusal(options), HasSubstr("has no column 'cat'"));
}

TEST(LabelColumns, OfASplitThatIsWrittenAreReadAgain) {
  for (const char* headings : {"a,b", "a;b,'c'", "\"x, y\",\"\"\"z\"\"\"", "=1+1,#2"}) {
    Drawn drawn("all.csv", fmt::format("path,{}\n", headings), {",1,0", ",1,1", ",0,0"});
    drawn.with("val_fraction", "0.2");
    const Dataset train = drawn.open();
    drawn.options.split = "val";
    const auto list = drawn.folder.write("split.csv", split_list(train, drawn.open()));
    const Dataset again = open_images(image_options(list.string()));
    EXPECT_EQ(again.size(), 8);
    EXPECT_EQ(again.class_names(), train.class_names());
    for (int64_t i = 0; i < again.size(); ++i) EXPECT_EQ(values_of(again, i), values_of(train, i));
  }
}

TEST(LabelColumns, MayBeDividedBySemicolonsOrTabs) {
  EXPECT_THAT(Drawn("all.csv", "path;a;b\n", {";1;0", ";1;1", ";0;0"}).open().class_names(),
              ElementsAre("a", "b"));
  EXPECT_EQ(values_of(Drawn("all.csv", "path\tx\n", {"\t1.5", "\t2"}).open(), 1), Values{2});
}

}  // namespace
}  // namespace tandem

#endif
