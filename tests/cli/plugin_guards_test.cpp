// What keeps a mistake of a plugin's layer out of training: the trial before the first step, and
// the guards around passes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/plugin_desk.h"
#include "tests/cli/program.h"
#include "tests/support/folders.h"

namespace tandem {
namespace {

using test::bad_plugin;
using test::Desk;
using test::replaced;
using test::tiny_net;
using test::with_plugins;
using testing::AllOf;
using testing::HasSubstr;

// Trains a net in which a mistake stands between two convolutions and the score.
test::Outcome train_mistake(const Desk& desk, const std::string& mistake,
                            const std::string& options, const std::string& environment = "") {
  std::string net = replaced(
      tiny_net(), "layer { name: \"relu1\" type: \"ReLU\" bottom: \"conv1\" top: \"conv1\" }",
      "layer {\n  name: \"conv2\" type: \"Convolution\" bottom: \"data\" top: \"conv2\"\n"
      "  convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: \"xavier\" } }\n}\n"
      "layer { name: \"own\" type: \"mistake." +
          mistake + "\" bottom: \"conv1\" bottom: \"conv2\" top: \"own\" }");
  net = replaced(net, "\"Dropout\" bottom: \"conv1\" top: \"conv1\"",
                 "\"Dropout\" bottom: \"own\" top: \"own\"");
  desk.write("net.prototxt", replaced(net, "\"InnerProduct\" bottom: \"conv1\"",
                                      "\"InnerProduct\" bottom: \"own\""));
  return desk.tandem(
      "train --net net.prototxt --data synthetic --devices cpu:2 --steps 3 --out run " + options,
      "rm -rf run; exec env " + environment + with_plugins(bad_plugin("mistakes")));
}

TEST(PluginGuards, ChangeNoBitOfALayerWithoutMistakesAndPrintWhatTheyCost) {
  const Desk desk;
  const test::Outcome plain = train_mistake(desk, "None", "--no-plugin-check");
  ASSERT_EQ(plain.code, 0) << plain.errors;
  EXPECT_THAT(plain.output, testing::Not(HasSubstr("between guards")));
  const std::string weights = desk.read("run/last.safetensors");
  const test::Outcome guarded = train_mistake(desk, "None", "--no-plugin-check --check-plugins");
  ASSERT_EQ(guarded.code, 0) << guarded.errors;
  EXPECT_TRUE(weights == desk.read("run/last.safetensors"));
  EXPECT_THAT(guarded.output,
              AllOf(HasSubstr("passes of third parties' kernels ran between guards"),
                    HasSubstr("ms of their own")));
  const test::Outcome built_in = desk.tandem(
      "train --net tiny.prototxt --data synthetic --steps 1 --out other --check-plugins");
  EXPECT_THAT(built_in.output, HasSubstr("no layer of the net has a kernel of a third party"));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(PluginGuards, EndARunThatWouldTrainWronglyWithoutAWord) {
  for (const auto& [mistake, message] : std::vector<std::pair<std::string, std::string>>{
           {"WritesPastOutput", "output 0: byte 0 after its end was written"},
           {"WritesBeforeOutput", "in front of it was written"},
           {"WritesPastGradient", "the gradient of input 0: byte 0 after its end"},
           {"WritesPastScratch", "scratch memory: byte 0 after its end"},
           {"WritesPastSaved", "saved memory: byte 0 after its end"},
           {"WritesInput", "input 0 was written, but this pass may only read it"},
           {"WritesWeight", "weight 0 was written"},
           {"WritesOutputGradient", "the gradient of output 0 was written"},
           {"WritesOutputInBackward", "output 0 was written, but this pass may not use it"},
           {"LeavesLastElement", "was not written"},
           {"LeavesSecondGradient", "the gradient of input 1: element 0 was not written"},
           {"AddsToOutput", "or was made from memory that this pass has not written"},
           {"AddsToInputGradient", "or was made from memory that this pass has not written"},
           {"MissingReadsInputs", "or was made from memory that this pass has not written"},
           {"ReadsUnwrittenScratch", "or was made from memory that this pass has not written"}}) {
    const Desk desk;
    const test::Outcome outcome = train_mistake(desk, mistake, "--no-plugin-check --check-plugins");
    EXPECT_EQ(outcome.code, 1) << mistake << "\n" << outcome.errors;
    EXPECT_THAT(outcome.errors, AllOf(HasSubstr("(mistake." + mistake + ")"), HasSubstr(message),
                                      HasSubstr("mistakes.so")));
  }
}

TEST(PluginTrial, RefusesALayerThatBreaksAPromiseBeforeTheFirstStep) {
  for (const std::string mistake :
       {"WrongInputGradient", "IgnoresAccumulate", "StaticMeans", "ZeroByZeroInBackward",
        "UsesBatchSize", "WritesPastOutput", "Crashes", "CostNotANumber", "NegativeCost"}) {
    const Desk desk;
    const test::Outcome outcome = train_mistake(desk, mistake, "");
    EXPECT_EQ(outcome.code, 1) << mistake << "\n" << outcome.output;
    EXPECT_THAT(outcome.errors,
                AllOf(HasSubstr("layer 'own' (mistake." + mistake + ")"), HasSubstr("tandem: ")))
        << mistake;
    EXPECT_FALSE(std::filesystem::exists(desk / "run")) << mistake;
  }
}

TEST(PluginTrial, IsMadeOnceForAModuleAndANetAndCanBeLeftOut) {
  const Desk desk;
  desk.make_folder("cache");
  const std::string cache = " XDG_CACHE_HOME='" + (desk / "cache").string() + "' ";
  const auto train = [&](const std::string& options) {
    return train_mistake(desk, "None", options, cache);
  };
  const test::Outcome first = train("");
  EXPECT_EQ(first.code, 0) << first.errors;
  EXPECT_THAT(first.output, HasSubstr("plugins: mistake.None kept "));
  EXPECT_THAT(train("").output, testing::Not(HasSubstr("plugins: mistake.None")));
  EXPECT_THAT(train("--batch 6").output, testing::Not(HasSubstr("plugins: mistake.None")));
  std::filesystem::remove_all(desk / "cache");
  EXPECT_THAT(train("--no-plugin-check").output, testing::Not(HasSubstr("plugins: mistake.None")));
  EXPECT_THAT(train("").output, HasSubstr("plugins: mistake.None kept "));
}

TEST(PluginTrial, LeavesOutThePromisesThatItsUserNamesAndDoesNotRememberThem) {
  const Desk desk;
  desk.make_folder("cache");
  const std::string cache = " XDG_CACHE_HOME='" + (desk / "cache").string() + "' ";
  const test::Outcome outcome =
      train_mistake(desk, "ScalesInTraining", "--plugin-check-without phases,skip", cache);
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output,
              AllOf(HasSubstr("plugins: left out by --plugin-check-without: phases, skip\n"),
                    HasSubstr("plugins: mistake.ScalesInTraining kept ")));
  const test::Outcome whole = train_mistake(desk, "ScalesInTraining", "", cache);
  EXPECT_EQ(whole.code, 1);
  EXPECT_THAT(whole.errors,
              AllOf(HasSubstr("breaks the promise 'phases'"), HasSubstr("TANDEM_TESTS_OTHERWISE"),
                    HasSubstr("--plugin-check-without 'phases' leaves this promise out")));
  EXPECT_THAT(train_mistake(desk, "None", "--plugin-check-without nan").output,
              HasSubstr("plugins: --plugin-check-without 'nan' has no effect: it is not tried "
                        "before training\n"));
  EXPECT_THAT(train_mistake(desk, "None", "--plugin-check-without fases").errors,
              AllOf(HasSubstr("did you mean 'phases'?"), HasSubstr("there are: declarations, ")));
}

TEST(PluginTrial, SaysThatAModuleWithThreadsOfItsOwnIsNotTried) {
  const Desk desk;
  desk.write("net.prototxt", replaced(tiny_net(), "type: \"ReLU\"", "type: \"right.HasThread\""));
  const test::Outcome outcome =
      desk.tandem("train --net net.prototxt --data synthetic --steps 2 --out run",
                  with_plugins(bad_plugin("own_process")));
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output,
              AllOf(HasSubstr("layers of plugins are not tried before the first step as "),
                    HasSubstr("own_process.so has threads of its own, which a child process "
                              "lacks; 'tandem plugin check --net ")));
}

TEST(PluginTrial, LetsLayersTrainThatDifferOnPurposeAndSaysWhatItLeavesOut) {
  const Desk desk;
  std::string net = replaced(tiny_net(), "type: \"ReLU\"", "type: \"right.StraightSign\"");
  net = replaced(net, "\"Dropout\" bottom: \"conv1\" top: \"conv1\"",
                 "\"right.RowsDropped\" bottom: \"conv1\" top: \"dropped\" }\n"
                 "layer { name: \"scale\" type: \"right.BinaryScale\" bottom: \"dropped\" top: "
                 "\"scaled\" }\n"
                 "layer { name: \"reversal\" type: \"right.Reversal\" bottom: \"scaled\" top: "
                 "\"reversed\"");
  net =
      replaced(net, "\"InnerProduct\" bottom: \"conv1\"", "\"InnerProduct\" bottom: \"reversed\"");
  desk.write("net.prototxt", net +
                                 "layer { name: \"margin\" type: \"right.ArcFaceInTraining\" "
                                 "bottom: \"reversed\" bottom: \"label\" top: \"margin\" "
                                 "right_param { num_output: 2 } }\n");
  desk.make_folder("cache");  // a net that was tried before is not tried again
  const test::Outcome outcome =
      desk.tandem("train --net net.prototxt --data synthetic --steps 2 --out run",
                  "XDG_CACHE_HOME='" + (desk / "cache").string() + "' " +
                      with_plugins(bad_plugin("right_layers")));
  EXPECT_EQ(outcome.code, 0) << outcome.output << outcome.errors;
  for (const char* left_out :
       {"right.StraightSign: promise 'input gradients'",
        "right.Reversal: promise 'input gradients'",
        "right.BinaryScale: promise 'weight gradients'", "right.RowsDropped: promise 'phases'",
        "right.ArcFaceInTraining: promise 'phases'"}) {
    EXPECT_THAT(outcome.output, HasSubstr("plugins: " + std::string(left_out) + " is left out: "));
  }
}
#endif

}  // namespace
}  // namespace tandem
