// Yes and no in two lists that write them in two ways: the same thing, or a refusal.
#include "plugins/abi.h"
#ifdef TANDEM_TEST_IMAGES

#include "tests/data/list_fixture.h"

namespace tandem {
namespace {

using test::open_images;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class ListTruths : public test::ListFixture {
 protected:
  // The split val of a training list and a further list of lines that begin with pictures.
  [[nodiscard]] DatasetOptions further(const std::string& train, const std::string& val) const {
    DatasetOptions result = list(train);
    result.parameters["val"] = folder_.write("v.csv", val).string();
    result.split = "val";
    return result;
  }
  [[nodiscard]] Values smokers(const std::string& train, const std::string& val) const {
    const Dataset data =
        open_images(further("path,age,smoker\n0.png,20.5," + train.substr(0, train.find('/')) +
                                "\n1.png,30.5," + train.substr(train.find('/') + 1) +
                                "\n2.png,40.5," + train.substr(0, train.find('/')) + "\n",
                            "path,age,smoker\n3.png,20.5," + val.substr(0, val.find('/')) +
                                "\n4.png,30.5," + val.substr(val.find('/') + 1) + "\n"));
    return {values(data, 0)[1], values(data, 1)[1]};
  }
  [[nodiscard]] std::string file(const char* name) const { return (folder_ / name).string(); }
};

TEST_F(ListTruths, AmongNumbersAreThoseOfTheTrainingList) {
  for (const char* val : {"no/yes", "False/True", "0/1", "n/Y", "-1/yes"}) {
    EXPECT_EQ(smokers("0/1", val), (Values{0, 1})) << val;
    EXPECT_EQ(smokers("no/yes", val), (Values{0, 1})) << val;
    if (val[0] == '0') continue;
    EXPECT_EQ(smokers("-1/1", val), (Values{-1, 1})) << val;
  }
  EXPECT_EQ(smokers("no/yes", "-1/1"), (Values{0, 1}));
  EXPECT_EQ(smokers("true/false", "1/0"), (Values{1, 0}));
}

TEST_F(ListTruths, AmongNumbersAreSaid) {
  const std::string head = "path,age,smoker\n";
  const DatasetOptions words =
      further(head + "0.png,20.5,0\n1.png,30.5,1\n", head + "2.png,20.5,yes\n3.png,30.5,no\n");
  EXPECT_THAT(
      open_images(words).notes(),
      HasSubstr("v.csv': column 'smoker' has 'no' and the like: 0 and 1 among numbers as in "
                "'" +
                file("l.csv")));
  const DatasetOptions signs =
      further(head + "0.png,20.5,-1\n1.png,30.5,1\n", head + "2.png,20.5,0\n3.png,30.5,1\n");
  EXPECT_THAT(open_images(signs).notes(), HasSubstr("has -1 and 1: taken as the numbers"));
}

TEST_F(ListTruths, WhereTrainingHasOtherNumbersAreRefusedWithBothFiles) {
  const std::string head = "path,age,packs\n";
  EXPECT_THAT(test::refusal(further(head + "0.png,20.5,2\n1.png,30.5,7\n",
                                    head + "2.png,20.5,yes\n3.png,30.5,no\n")),
              AllOf(HasSubstr("column 'packs' has 'no' and the like, where the training list '" +
                              file("l.csv")),
                    HasSubstr(file("v.csv"))));
  EXPECT_THAT(test::refusal(further(head + "0.png,20.5,0\n1.png,30.5,1\n",
                                    head + "2.png,20.5,yes\n3.png,30.5,never\n")),
              AllOf(HasSubstr("v.csv:2: column 'packs' has 'yes', which is no number"),
                    HasSubstr("the training list '" + file("l.csv") + "' has numbers")));
}

TEST_F(ListTruths, OfTwoClassesAreTheSameInOtherWords) {
  for (const char* train : {"no/yes", "0/1", "False/True", "-1/1"}) {
    for (const char* val : {"no/yes", "0/1", "FALSE/TRUE", "-1/1", "n/y"}) {
      const std::string of_train(train), of_val(val);
      const auto lines = [](const std::string& pair, int first) {
        return fmt::format("path,smoker\n{}.png,{}\n{}.png,{}\n", first,
                           pair.substr(0, pair.find('/')), first + 1,
                           pair.substr(pair.find('/') + 1));
      };
      const DatasetOptions options = further(lines(of_train, 0), lines(of_val, 2));
      const Dataset data = open_images(options);
      ASSERT_EQ(data.size(), 2) << train << " " << val;
      EXPECT_EQ(data.label(0), 0) << train << " " << val;
      EXPECT_EQ(data.label(1), 1) << train << " " << val;
      const std::string note = "' is the class '";
      EXPECT_EQ(data.notes().find(note) == std::string::npos, of_train == of_val) << data.notes();
    }
  }
}

TEST_F(ListTruths, OfARunsClassesAreFoundInOtherData) {
  DatasetOptions options = list("path,smoker\n0.png,true\n1.png,false\n");
  options.class_names = {"no", "yes"};
  const Dataset data = open_images(options);
  EXPECT_EQ(data.sample_name(0), folder_ / "1.png");
  EXPECT_EQ(data.label(0), 0);
  EXPECT_EQ(data.label(1), 1);
}

TEST_F(ListTruths, ThatOtherTextsAreAmongAreUnknownClassesWithBothFiles) {
  EXPECT_THAT(test::refusal(further("path,smoker\n0.png,yes\n1.png,no\n",
                                    "path,smoker\n2.png,true\n3.png,never\n")),
              AllOf(HasSubstr("v.csv:2: class 'true' is unknown to training ('" + file("l.csv")),
                    Not(HasSubstr("the model"))));
}

TEST_F(ListTruths, InSeveralWaysInOneColumnAreRefused) {
  const std::string joined = "path,smoker\n0.png,yes\n1.png,no\n2.png,1\n3.png,0\n";
  EXPECT_THAT(test::refusal(list(joined)),
              HasSubstr("column 'smoker' says yes and no in several ways (0, 1, no, yes): write"));
  EXPECT_EQ(open_images(list(joined, {{"task", "labels"}})).class_count(), 4);
}

TEST_F(ListTruths, WithZeroAndMinusOneAreNoLabels) {
  const std::string head = "path,a,b\n";
  EXPECT_THAT(test::refusal(further(head + "0.png,1,1\n1.png,0,1\n",
                                    head + "2.png,1,-1\n3.png,0,0\n4.png,1,1\n")),
              HasSubstr("v.csv': b has 0, 1 and -1: a label is 0 or 1"));
  EXPECT_THAT(test::refusal(list(head + "0.png,1,-1\n1.png,0,0\n", {{"task", "multilabel"}})),
              HasSubstr("l.csv': b has 0, 1 and -1"));
  const Dataset other =
      open_images(further(head + "0.png,1,1\n1.png,0,1\n", head + "2.png,yes,-1\n3.png,no,1\n"));
  EXPECT_EQ(values(other, 0), (Values{1, 0}));
  EXPECT_EQ(values(other, 1), (Values{0, 1}));
}

TEST_F(ListTruths, OfOneLabelAreALabelInAFurtherList) {
  DatasetOptions options =
      further("path,smoker\n0.png,1\n1.png,0\n", "path,smoker\n2.png,yes\n3.png,never\n");
  options.parameters["task"] = "multilabel";
  EXPECT_THAT(test::refusal(options), HasSubstr("has 'never'; a label is 0 or 1"));
}

}  // namespace
}  // namespace tandem

#endif
