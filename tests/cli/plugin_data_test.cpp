// Data sets of plugins that do not keep their promises, or whose data are wrong: what `tandem
// train` says of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/cli/plugin_desk.h"
#include "tests/cli/program.h"

namespace tandem {
namespace {

using test::Desk;
using test::train_on_mistake;
using testing::AllOf;
using testing::HasSubstr;

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(PluginGuards, EndARunWhoseDataSetWritesBeyondItsPixelsOrLeavesSome) {
  for (const auto& [slip, message] : std::vector<std::pair<std::string, std::string>>{
           {"WritesPastPixels", "of the pixels, byte 0 after its end was written"},
           {"LeavesLastRow", "of the pixels is not written"},
           {"CountsCalls", "or is another one in each call"},
           {"LeavesLabel", "the label is not written"}}) {
    const Desk desk;
    const test::Outcome outcome =
        train_on_mistake(desk, slip, "--steps 4 --no-plugin-check --check-plugins");
    EXPECT_EQ(outcome.code, 1) << slip << outcome.output;
    EXPECT_THAT(outcome.errors, AllOf(HasSubstr("data set 'bad_data_" + slip + "' ("),
                                      HasSubstr("mistakes_of_data.so"), HasSubstr(message)));
  }
  const Desk desk;
  const test::Outcome right = train_on_mistake(desk, "None", "--steps 4 --check-plugins");
  EXPECT_EQ(right.code, 0) << right.errors;
  EXPECT_THAT(right.output, testing::ContainsRegex(
                                "[0-9]+ samples of data set 'bad_data_None' were read between"));
}

TEST(PluginTrial, RefusesADataSetThatBreaksAPromiseBeforeTheFirstStep) {
  for (const auto& [slip, promise] :
       std::vector<std::pair<std::string, std::string>>{{"Races", "threads"},
                                                        {"DrawsFromRand", "same sample"},
                                                        {"LeavesLastRow", "pixels"},
                                                        {"OtherLabel", "label"},
                                                        {"ValidatesOnTraining", "splits"},
                                                        {"LabelBySeed", "label"},
                                                        {"ReadsBefore", "same sample"},
                                                        {"NanInSome", "pixels"},
                                                        {"NanInValidation", "pixels"},
                                                        {"WrongBytes", "bytes"}}) {
    const Desk desk;
    const test::Outcome outcome = train_on_mistake(desk, slip, "--steps 2");
    EXPECT_EQ(outcome.code, 1) << slip << "\n" << outcome.output;
    EXPECT_THAT(outcome.errors,
                AllOf(HasSubstr("data set 'bad_data_" + slip + "' ("),
                      HasSubstr("mistakes_of_data.so) breaks the promise '" + promise + "': "),
                      HasSubstr("--no-plugin-check")))
        << slip;
    EXPECT_FALSE(std::filesystem::exists(desk / "run")) << slip;
  }
}

TEST(PluginTrial, OfADataSetIsMadeOnceAndCanBeLeftOut) {
  const Desk desk;
  desk.make_folder("cache");
  const std::string line = "plugins: data set 'bad_data_None' kept ",
                    cache = "XDG_CACHE_HOME='" + (desk / "cache").string() + "'";
  const test::Outcome first = train_on_mistake(desk, "None", "--steps 2", cache);
  EXPECT_EQ(first.code, 0) << first.errors;
  EXPECT_THAT(first.output, HasSubstr(line));
  EXPECT_THAT(train_on_mistake(desk, "None", "--steps 2", cache).output,
              testing::Not(HasSubstr(line)));
  const test::Outcome left_out =
      train_on_mistake(desk, "LabelBySeed", "--steps 2 --no-plugin-check");
  EXPECT_EQ(left_out.code, 0) << left_out.errors;
}
#endif

// A message about value 3 of sample 77 of a data set of mistakes_of_data.
auto names_the_sample(const char* beginning) {
  return AllOf(HasSubstr(beginning),
               HasSubstr("mistakes_of_data.so), value 3 of sample 77 ('made up') is not a number "
                         "(NaN)"));
}

TEST(PluginData, WithANanEndTrainingWithTheNameOfTheSample) {
  const Desk desk;
  const test::Outcome outcome =
      train_on_mistake(desk, "NanInSome", "--steps 20 --no-plugin-check --lr 0.001");
  EXPECT_EQ(outcome.code, 1) << outcome.output;
  EXPECT_THAT(outcome.errors,
              AllOf(names_the_sample("the loss is not finite (nan), as the data are not: in data "
                                     "set 'bad_data_NanInSome' ("),
                    testing::Not(HasSubstr("learning rate"))));
}

TEST(PluginData, WithANanInValidationAloneNameTheSample) {
  const Desk desk;
  const test::Outcome outcome =
      train_on_mistake(desk, "NanInValidation", "--epochs 2 --no-plugin-check --lr 0.001");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output,
              AllOf(names_the_sample("the validation loss is not finite, as the validation data "
                                     "are not: in data set 'bad_data_NanInValidation' ("),
                    testing::Not(HasSubstr("running statistics"))));
}

TEST(PluginData, ThatThrowAreNamedWithTheSample) {
  const Desk desk;
  const test::Outcome outcome =
      train_on_mistake(desk, "FailsOnLast", "--steps 20 --no-plugin-check");
  EXPECT_EQ(outcome.code, 1) << outcome.output;
  EXPECT_THAT(outcome.errors,
              AllOf(HasSubstr("sample 79 ('made up') of data set 'bad_data_FailsOnLast' ("),
                    HasSubstr("mistakes_of_data.so): no such element")));
}

TEST(PluginData, WithAClassWhoseNameIsNoTextAreNamed) {
  const Desk desk;
  const test::Outcome outcome = train_on_mistake(desk, "NameIsNoText", "--steps 1");
  EXPECT_EQ(outcome.code, 1) << outcome.output;
  EXPECT_THAT(outcome.errors, AllOf(HasSubstr("its name is not UTF-8; class_name() of data set "
                                              "'bad_data_NameIsNoText' ("),
                                    testing::Not(HasSubstr("folder"))));
}

}  // namespace
}  // namespace tandem
