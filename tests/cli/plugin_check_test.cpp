// `tandem plugin check` finds every deliberate mistake, and built-in and right layers pass it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/support/folders.h"

namespace tandem {
namespace {

using test::Desk;
using test::Outcome;
using testing::AllOf;
using testing::HasSubstr;

std::string mistakes_module() {
  return (test::test_plugin_folder() / "mistakes/mistakes.so").string();
}

// The names of the broken promises of each layer.
std::map<std::string, std::set<std::string>> broken_promises(const std::string& json) {
  std::map<std::string, std::set<std::string>> broken;
  for (const auto& finding : nlohmann::json::parse(json)) {
    std::set<std::string>& of_layer = broken[finding.at("layer")];
    if (finding.at("verdict") == "broken") of_layer.insert(finding.at("promise"));
  }
  return broken;
}

// Programs of a sanitizer end at the first of these mistakes, as they should.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// Of the table in docs/reports/plugin_mistakes.md: each mistake, and the promise by which the check
// finds it; "": it does not. A row has the promise, three columns, and "Name: what; Name: what".
std::map<std::string, std::string> documented_mistakes() {
  static const std::regex row(R"(^\| (?:`([a-z ]+)`|\*\*silent\*\*) \|(?: [^|]* \|){3} (.*) \|$)");
  static const std::regex name(R"((?:^|; )([A-Z]\w+): )");
  std::map<std::string, std::string> mistakes;
  std::istringstream text(
      test::read_text(test::source_folder() / "docs/reports/plugin_mistakes.md"));
  std::smatch found;
  for (std::string line; std::getline(text, line);) {
    if (!std::regex_search(line, found, row)) continue;
    const std::string promise = found[1], all = found[2];
    for (std::sregex_iterator one(all.begin(), all.end(), name), end; one != end; ++one) {
      mistakes[(*one)[1]] = promise;
    }
  }
  return mistakes;
}

// What a check of the module with mistakes finds, with these options.
std::map<std::string, std::set<std::string>> found_with(const std::string& options) {
  const Desk desk;
  const Outcome outcome = desk.tandem("plugin check '" + mistakes_module() + "' --json " + options);
  return broken_promises(outcome.output);
}

bool is_right(const std::string& layer) {
  return layer == "mistake.None" || layer.starts_with("mistake.Right");
}

TEST(PluginCheck, FindsNoMistakeInRightLayers) {
  size_t right = 0;
  for (const auto& [layer, unused] : found_with("--promise declarations")) {
    if (!is_right(layer)) continue;
    EXPECT_THAT(found_with("--layer " + layer).at(layer), testing::IsEmpty()) << layer;
    ++right;
  }
  EXPECT_EQ(right, 11U);
}

// All promises of all mistakes would take ten minutes, so each is tried with its own.
TEST(PluginCheck, FindsEveryMistake) {
  const std::map<std::string, std::string> documented = documented_mistakes();
  const std::map<std::string, std::set<std::string>> layers = found_with("--promise declarations");
  const auto right = std::count_if(layers.begin(), layers.end(),
                                   [](const auto& one) { return is_right(one.first); });
  EXPECT_GE(documented.size(), 105U);
  EXPECT_EQ(documented.size(), layers.size() - static_cast<size_t>(right))
      << "docs/reports/plugin_mistakes.md has other mistakes";
  size_t silent = 0;
  for (const auto& [mistake, promise] : documented) {
    const std::string layer = "mistake." + mistake;
    ASSERT_TRUE(layers.contains(layer)) << mistake << " is no mistake of tests/bad_plugins";
    if (promise.empty()) {
      ++silent;  // a write far past a buffer may also hit memory that is not mapped
      continue;
    }
    const auto broken = found_with("--layer " + layer + " --promise '" + promise + "'");
    EXPECT_THAT(broken.at(layer), testing::Contains(promise)) << mistake;
  }
  EXPECT_LE(silent, 3U);
}

TEST(PluginCheck, FindsTheMistakesOfDataSets) {
  const Desk desk;
  const Outcome outcome = desk.tandem(
      "plugin check '" +
      (test::test_plugin_folder() / "mistakes_of_data/mistakes_of_data.so").string() + "' --json");
  ASSERT_EQ(outcome.code, 1) << outcome.errors;
  auto broken = broken_promises(outcome.output);
  EXPECT_THAT(broken.at("bad_data_None"), testing::IsEmpty());
  for (const auto& [slip, promise] :
       std::map<std::string, std::string>{{"Races", "threads"},
                                          {"DrawsFromRand", "same sample"},
                                          {"CountsCalls", "same sample"},
                                          {"WritesPastPixels", "pixels"},
                                          {"LeavesLastRow", "pixels"},
                                          {"OtherLabel", "label"},
                                          {"ValidatesOnTraining", "splits"},
                                          {"KeepsFilesOpen", "growth"},
                                          {"LeavesLabel", "pixels"},
                                          {"LabelBySeed", "label"},
                                          {"ReadsBefore", "same sample"},
                                          {"NanInSome", "pixels"},
                                          {"NanInValidation", "pixels"},
                                          {"FailsOnLast", "label"},
                                          {"WrongBytes", "bytes"}}) {
    EXPECT_THAT(broken.at("bad_data_" + slip), testing::Contains(promise)) << slip;
  }
}

TEST(PluginCheck, SaysACauseOfSeveralBrokenPromisesOnce) {
  const Desk desk;
  const Outcome outcome =
      desk.tandem("plugin check '" + mistakes_module() + "' --layer mistake.ThrowsInBackward");
  EXPECT_EQ(outcome.code, 1) << outcome.errors;
  const size_t first = outcome.output.find("no luck today");
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(outcome.output.find("no luck today", first + 1), std::string::npos) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("more promises, each with a reason that is above: "));
}

TEST(PluginCheck, SaysFirstAndAloneThatAPassIsNotTheSameTwice) {
  const Desk desk;
  const Outcome outcome =
      desk.tandem("plugin check '" + mistakes_module() + "' --layer mistake.GlobalRandom");
  EXPECT_EQ(outcome.code, 1) << outcome.errors;
  EXPECT_THAT(outcome.output,
              AllOf(HasSubstr("kept   declarations"), HasSubstr("broken repeats"),
                    HasSubstr("What compares two runs is not tried"), HasSubstr("kept   memory"),
                    HasSubstr(" 1 broken"), testing::Not(HasSubstr("rows    "))));
}

// Of threads alone, some runs would find it.
TEST(PluginCheck, FindsAStaticBufferInEveryRunAndInLargeInputs) {
  const Desk desk;
  const std::string check = "plugin check '" + mistakes_module() +
                            "' --layer mistake.StaticBuffer --promise instances --input ";
  for (const char* shape : {"1x2x2x2", "2x3x5x5", "2x8x32x32", "4x16x64x64"}) {
    const Outcome outcome = desk.tandem(check + shape);
    EXPECT_EQ(outcome.code, 1) << shape;
    EXPECT_THAT(outcome.output, HasSubstr("if other kernels of the layer run at the same time"));
  }
}

// Its command has one shape, so another one comes before it in a process of its own.
TEST(PluginCheck, FindsATableOfTheFirstShapeWithOneShape) {
  const Desk desk;
  const Outcome outcome =
      desk.tandem("plugin check '" + mistakes_module() +
                  "' --layer mistake.TableOfFirstShape --promise instances --input 2x3x4x4");
  EXPECT_EQ(outcome.code, 1) << outcome.errors;
  EXPECT_THAT(outcome.output,
              HasSubstr("from that of a process in which no other shape came before"));
}

TEST(PluginCheck, SaysWhatALabelIsThatIsNone) {
  const Desk desk;
  const Outcome outcome =
      desk.tandem("plugin check '" + mistakes_module() +
                  "' --layer mistake.TakesAnyLabel --promise labels --input 3x4x1x1 --input "
                  "3x1x1x1");
  EXPECT_THAT(outcome.output, HasSubstr("label 4 (the first beyond the classes) in row "));
}

TEST(PluginCheck, PrintsACommandThatRunsTheFailingCaseAgain) {
  const Desk desk;
  const std::string module = "'" + mistakes_module() + "'";
  const Outcome outcome =
      desk.tandem("plugin check " + module + " --layer mistake.Crashes --promise memory");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("broken memory"), HasSubstr("it crashed: Segm"),
                                    HasSubstr("0 promises kept, 1 broken")));
  const size_t at = outcome.output.find("tandem plugin check ");
  ASSERT_NE(at, std::string::npos);
  const std::string command = outcome.output.substr(at + 7, outcome.output.find('\n', at) - at - 7);
  EXPECT_THAT(command,
              AllOf(HasSubstr("--input 3x4x3x5 --input 3x4x3x5"), HasSubstr("--promise 'memory'")));
  const Outcome again = desk.tandem(command);
  EXPECT_EQ(again.code, 1) << again.errors;
  EXPECT_THAT(again.output, HasSubstr("it crashed: Segm"));
}
#endif

std::string check_of_right_layers() {
  return "plugin check '" + (test::test_plugin_folder() / "right_layers/right_layers.so").string() +
         "' ";
}

TEST(PluginCheck, LeavesOutOnlyWhatCannotHoldForALayerThatDiffersOnPurpose) {
  const Desk desk;
  const auto check = [&](const std::string& layer) {
    return desk.tandem(check_of_right_layers() + "--layer right." + layer).output;
  };
  EXPECT_THAT(check("Reversal"),
              AllOf(HasSubstr("note   input gradients   left out: gradients are not compared with "
                              "finite differences, as the type says TANDEM_NO_DERIVATIVE"),
                    HasSubstr("kept   phases"), HasSubstr("kept   rows"),
                    HasSubstr("kept   extremes"), HasSubstr(" 0 broken")));
  EXPECT_THAT(check("BinaryScale"), AllOf(HasSubstr("note   weight gradients  left out: "),
                                          HasSubstr("kept   accumulate"), HasSubstr(" 0 broken")));
  EXPECT_THAT(check("ArcFaceInTraining"),
              AllOf(HasSubstr("note   phases            left out: testing is not compared with "
                              "training, as the type says TANDEM_TESTS_OTHERWISE"),
                    HasSubstr("kept   weight gradients"), HasSubstr("kept   samples")));
}

TEST(PluginCheck, NamesTheTraitsByWhichALayerDiffersOnPurpose) {
  const Desk desk;
  const std::string check = "plugin check '" + mistakes_module() + "' --layer mistake.";
  EXPECT_THAT(desk.tandem(check + "ScalesInTraining --promise phases").output,
              HasSubstr("TANDEM_TESTS_OTHERWISE"));
  EXPECT_THAT(desk.tandem(check + "ForgetsDropoutScale --promise phases").output,
              HasSubstr("TANDEM_TESTS_OTHERWISE"));
  for (const std::string wrong :
       {"WrongInputGradient --promise 'input", "WrongWeightGradient --promise 'weight"}) {
    EXPECT_THAT(desk.tandem(check + wrong + " gradients'").output,
                HasSubstr("TANDEM_NO_DERIVATIVE"));
  }
}

TEST(PluginCheck, LeavesOutThePromisesThatItsUserNames) {
  const Desk desk;
  const Outcome outcome = desk.tandem("plugin check ReLU --without 'input gradients,time'");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output,
              AllOf(testing::StartsWith("left out by --without: input gradients, time\n"),
                    HasSubstr("kept   rows"), testing::Not(HasSubstr("   input gradients")),
                    testing::Not(HasSubstr("note   time"))));
  EXPECT_THAT(desk.refusal("plugin check ReLU --promise rows --without rows"),
              HasSubstr("promise 'rows' is asked for and left out"));
  EXPECT_THAT(desk.refusal("plugin check ReLU --without fases,time"),
              AllOf(HasSubstr("unknown promise 'fases' (did you mean 'phases'?)"),
                    HasSubstr("there are: declarations, ")));
}

// Attention, a focal loss, ArcFace, a permutation, and those that differ on purpose.
TEST(PluginCheck, FindsNoMistakeInLayersOfOtherKinds) {
  const Desk desk;
  const Outcome outcome = desk.tandem(check_of_right_layers());
  EXPECT_EQ(outcome.code, 0) << outcome.output << outcome.errors;
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("right.Attention"), HasSubstr("right.SortedChannels"),
                                    HasSubstr("right.WritesFile")));
}

// A thread that began at load, a handler of SIGSEGV.
TEST(PluginCheck, LeavesAModuleItsThreadsAndItsSignalHandler) {
  const Desk desk;
  const std::string check = "plugin check '" +
                            (test::test_plugin_folder() / "own_process/own_process.so").string() +
                            "' --input 2x3x4x4 --layer right.";
  const Outcome thread = desk.tandem(check + "HasThread --promise instances");
  EXPECT_EQ(thread.code, 0) << thread.output << thread.errors;
  EXPECT_THAT(thread.output, HasSubstr("not compared with a fresh process: the module has threads "
                                       "of its own"));
  const Outcome handler = desk.tandem(check + "HasHandler");
  EXPECT_EQ(handler.code, 0) << handler.output << handler.errors;
}

TEST(PluginCheck, SaysWhyNothingCanBeCheckedIfItsFirstPromiseIsLeftOut) {
  const Desk desk;
  const Outcome layer = desk.tandem(
      "plugin check Convolution --set kernel_size=99 --set num_output=4 --input 2x3x4x4 --without "
      "declarations");
  EXPECT_EQ(layer.code, 1);
  EXPECT_THAT(layer.output, HasSubstr("kernel 99 exceeds the padded input"));
  const Outcome data = desk.tandem("plugin check mnist_idx --data no_such_folder --without opens");
  EXPECT_EQ(data.code, 1);
  EXPECT_THAT(data.output, HasSubstr("no_such_folder"));
}

TEST(PluginCheck, OfALayerThatCallsExitSaysSoUnderItsNameAlone) {
  const Desk desk;
  const Outcome outcome = desk.tandem(
      "plugin check '" + (test::test_plugin_folder() / "run_time/run_time.so").string() +
      "' --layer test.Ends --set by=exit --input 2x3x3x3 --promise memory");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.output, HasSubstr("it ended the process with exit code 0"));
  EXPECT_THAT(outcome.errors, testing::Not(HasSubstr("called exit()")));
}

TEST(PluginCheck, OfEveryBuiltInLayerPasses) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  const std::string but = " --without cost";  // instrumented code takes longer than is declared
#else
  const std::string but;
#endif
  const Desk desk;
  const Outcome outcome = desk.tandem("plugin check --json" + but);
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  const auto broken = broken_promises(outcome.output);
  EXPECT_GE(broken.size(), 45U);
  for (const auto& finding : nlohmann::json::parse(outcome.output)) {
    EXPECT_NE(finding.at("verdict"), "broken")
        << finding.at("layer") << ": " << finding.at("detail") << "\n"
        << finding.at("command");
  }
}

TEST(PluginCheck, GivesEveryLabelAsPlainFloat32) {
  const Desk desk;
  for (const std::string promise : {"dtypes", "layouts"}) {
    const Outcome outcome = desk.tandem(
        "plugin check '" + (test::test_plugin_folder() / "run_time/run_time.so").string() +
        "' --layer test.Labelled --json --promise " + promise);
    EXPECT_EQ(outcome.code, 0) << outcome.errors;
    const auto findings = nlohmann::json::parse(outcome.output);
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_EQ(findings[0].at("verdict"), "kept") << findings[0].at("detail");
  }
}

TEST(PluginCheck, OfALayerWithWeightsForEachClassPasses) {
  const Desk desk;
  const Outcome outcome = desk.tandem(
      "plugin check '" + (test::test_plugin_folder() / "run_time/run_time.so").string() +
      "' --layer test.OfClass");
  EXPECT_EQ(outcome.code, 0) << outcome.output << outcome.errors;
}

TEST(PluginCheck, ShowsTheReasonOfAKernelAndTheArgumentsOfARefusedCase) {
  const Desk desk;
  const std::string check = "plugin check '" +
                            (test::test_plugin_folder() / "run_time/run_time.so").string() +
                            "' --layer ";
  EXPECT_THAT(
      desk.tandem(check + "test.Ends --set by=throw --input 3x4x3x5 --promise memory").output,
      HasSubstr("no luck today"));
  const Outcome refused =
      desk.tandem(check + "test.OfClass --set num_output=0 --input 2x3x1x1 --input 2x1x1x1");
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.output, HasSubstr("--set num_output=0 --input 2x3x1x1 --input 2x1x1x1"));
}

TEST(PluginCheck, GivesALayerThatHangsUpOnce) {
  const Desk desk;
  const Outcome outcome = desk.tandem(
      "plugin check '" + (test::test_plugin_folder() / "run_time/run_time.so").string() +
      "' --layer test.Ends --set by=hang --input 2x3x3x3");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(
      outcome.output,
      AllOf(HasSubstr("kept   declarations"), HasSubstr("it did not return within"),
            HasSubstr("note   overwrite         not tried: it hung"),
            HasSubstr("note   time              not tried: it hung"), HasSubstr("1 broken")));
}

TEST(PluginCheck, ChecksGradientsOfLargeInputs) {
  const Desk desk;
  const std::string check = "plugin check '" + mistakes_module() +
                            "' --input 2x8x32x32 --input 2x8x32x32 --layer mistake.";
  const Outcome wrong = desk.tandem(check + "WrongInputGradient --promise 'input gradients'");
  EXPECT_EQ(wrong.code, 1) << wrong.output;
  EXPECT_THAT(wrong.output, HasSubstr("broken input gradients"));
  const Outcome right = desk.tandem(check + "None --promise 'input gradients'");
  EXPECT_EQ(right.code, 0) << right.output;
  EXPECT_THAT(right.output, HasSubstr("kept   input gradients"));
}

TEST(PluginCheck, TellsTheTimeOfAnElementBesideACopy) {
  const Desk desk;
  const Outcome outcome = desk.tandem("plugin check ReLU Accuracy --promise time --json");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  const auto findings = nlohmann::json::parse(outcome.output);
  ASSERT_EQ(findings.size(), 2U);
  for (const auto& finding : findings) {
    EXPECT_EQ(finding.at("verdict"), "note");
    EXPECT_GT(finding.at("figures").at("forward_ns"), 0);
    EXPECT_GT(finding.at("figures").at("copy_ns"), 0);
  }
  EXPECT_GT(findings[0].at("figures").at("backward_ns"), 0);
  EXPECT_FALSE(findings[1].at("figures").contains("backward_ns"));  // a metric has none
  const Outcome text = desk.tandem("plugin check ReLU --promise time");
  EXPECT_THAT(text.output, testing::ContainsRegex("note   time +forward [0-9.]+ ns, backward "
                                                  "[0-9.]+ ns, a copy [0-9.]+ ns for each"));
}

#ifdef TANDEM_HAS_CUDA
TEST(PluginCheck, SaysThatCapturesAreNotCheckedWithoutADevice) {
  const Desk desk;
  const Outcome outcome =
      desk.tandem("plugin check ReLU --promise capture", "CUDA_VISIBLE_DEVICES=");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output,
              HasSubstr("note   capture           not checked: there is no device (cuda: no "));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// On the stand-in for CUDA's runtime library, which a sanitizer's would have to precede.
TEST(PluginCheck, CapturesTheKernelsOfAGpu) {
  const Desk desk;
  const auto check = [&](const std::string& environment) {
    return desk.tandem("plugin check InnerProduct --promise capture",
                       fmt::format("{} LD_PRELOAD='{}' TANDEM_PLUGIN_PATH='{}'", environment,
                                   (test::build_folder() / "lib/libtandem_fake_cuda.so").string(),
                                   (test::build_folder() / "lib/tandem/fake_cuda").string()));
  };
  const Outcome kept = check("");
  EXPECT_EQ(kept.code, 0) << kept.errors;
  EXPECT_THAT(kept.output, HasSubstr("kept   capture")) << kept.errors;
  const Outcome refused = check("TANDEM_FAKE_ALLOCATES=1");
  EXPECT_EQ(refused.code, 0) << refused.errors;
  EXPECT_THAT(refused.output, AllOf(HasSubstr("note   capture           refused on cuda"),
                                    HasSubstr("it allocates in every pass")));
  const Outcome broken = check("TANDEM_FAKE_FORGETS=1");
  EXPECT_EQ(broken.code, 1) << broken.errors;
  EXPECT_THAT(broken.output,
              AllOf(HasSubstr("broken capture"), HasSubstr("if the pass is captured on cuda")));
}
#endif
#endif

// What a layer or a library keeps for later use grows for some time, and then no more.
TEST(PluginCheck, DoesNotTakeWhatALayerKeepsForALeak) {
  const Desk desk;
  const Outcome outcome = desk.tandem(
      "plugin check '" + (test::test_plugin_folder() / "run_time/run_time.so").string() +
      "' --layer test.Keeps --promise growth");
  EXPECT_EQ(outcome.code, 0) << outcome.output << outcome.errors;
}

TEST(PluginCheck, RefusesUnknownNamesAndCases) {
  const Desk desk;
  EXPECT_THAT(desk.refusal("plugin check Poolin"), HasSubstr("did you mean 'Pooling'?"));
  EXPECT_THAT(desk.refusal("plugin check nowhere.so"), HasSubstr("there is no such file"));
  EXPECT_THAT(desk.refusal("plugin check ReLU --promise rovs"), HasSubstr("'rows'"));
  EXPECT_THAT(desk.refusal("plugin check ReLU --input 2x3"), HasSubstr("2x8x3x3"));
  EXPECT_THAT(desk.refusal("plugin chek ReLU"), HasSubstr("check, new"));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// A layer that draws one bit for each row has the same numbers in another step now and then.
TEST(PluginCheck, DoesNotTakeAChanceForAPromiseBroken) {
#if !defined(__x86_64__)
  GTEST_SKIP() << "the stored plugins are for x86-64";
#endif
  const Desk desk;
  const Outcome outcome = desk.tandem(
      "plugin check '" + (test::source_folder() / "tests/stored_plugins/stored_2_0.so").string() +
      "' --promise random");
  EXPECT_EQ(outcome.code, 0) << outcome.output;
}

// Of 12 masks of one element with the ratio 0.1, the same element is kept in all of one case in
// four.
TEST(PluginCheck, DoesNotTakeARareDropForAPromiseBroken) {
  const Desk desk;
  const std::string check =
      "plugin check Dropout --promise random --set dropout_ratio=0.1 --input ";
  for (const char* shape : {"1x1x1x1", "1x2x1x1", "2x1x1x1", "3x4x3x5"}) {
    const Outcome outcome = desk.tandem(check + shape);
    EXPECT_EQ(outcome.code, 0) << outcome.output;
  }
  EXPECT_THAT(desk.tandem(check + "1x1x1x1").output, HasSubstr("kept   random"));
}
#endif

}  // namespace
}  // namespace tandem
