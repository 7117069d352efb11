// `tandem plugin`: the check finds every deliberate mistake, built-in layers pass it, and what
// `tandem plugin new` writes builds, passes and trains.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <set>

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
TEST(PluginCheck, FindsEveryMistake) {
  const Desk desk;
  const Outcome outcome = desk.tandem("plugin check '" + mistakes_module() + "' --json");
  ASSERT_EQ(outcome.code, 1) << outcome.errors;
  auto broken = broken_promises(outcome.output);
  EXPECT_GE(broken.size(), 56U);
  EXPECT_THAT(broken.at("mistake.None"), testing::IsEmpty());
  broken.erase("mistake.None");
  // Not found: no promise asks for the first, and the second writes beyond the guard pages.
  broken.erase("mistake.SwallowsNanBackward");
  broken.erase("mistake.WritesFarPastOutput");
  for (const auto& [layer, promises] : broken) EXPECT_FALSE(promises.empty()) << layer;
  for (const auto& [layer, promise] :
       std::map<std::string, std::string>{{"AddsToInputGradient", "overwrite"},
                                          {"LeavesLastElement", "overwrite"},
                                          {"WrongInputGradient", "input gradients"},
                                          {"WrongSecondWeight", "weight gradients"},
                                          {"IgnoresAccumulate", "accumulate"},
                                          {"WritesPastOutput", "memory"},
                                          {"WritesInput", "memory"},
                                          {"MixesRows", "rows"},
                                          {"UsesBatchSize", "parts"},
                                          {"ThreadLocalRandom", "bits"},
                                          {"MissingRandomTrait", "random"},
                                          {"RandomByLocalRow", "random"},
                                          {"MissingReadsInputs", "reads"},
                                          {"NeedsAllGradients", "skip"},
                                          {"SwallowsNan", "nan"},
                                          {"WrongLayout", "layouts"},
                                          {"WrongSlices", "slices"},
                                          {"WrongInPlace", "in place"},
                                          {"LeaksEachPass", "growth"},
                                          {"LeaksFiles", "growth"},
                                          {"Crashes", "memory"}}) {
    EXPECT_THAT(broken["mistake." + layer], testing::Contains(promise)) << layer;
  }
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

TEST(PluginCheck, OfEveryBuiltInLayerPasses) {
  const Desk desk;
  const Outcome outcome = desk.tandem("plugin check --json");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  const auto broken = broken_promises(outcome.output);
  EXPECT_GE(broken.size(), 45U);
  for (const auto& finding : nlohmann::json::parse(outcome.output)) {
    EXPECT_NE(finding.at("verdict"), "broken")
        << finding.at("layer") << ": " << finding.at("detail") << "\n"
        << finding.at("command");
  }
}

TEST(PluginCheck, RefusesUnknownNamesAndCases) {
  const Desk desk;
  EXPECT_THAT(desk.refusal("plugin check Poolin"), HasSubstr("did you mean 'Pooling'?"));
  EXPECT_THAT(desk.refusal("plugin check nowhere.so"), HasSubstr("there is no such file"));
  EXPECT_THAT(desk.refusal("plugin check ReLU --promise rovs"), HasSubstr("'rows'"));
  EXPECT_THAT(desk.refusal("plugin check ReLU --input 2x3"), HasSubstr("2x8x3x3"));
  EXPECT_THAT(desk.refusal("plugin chek ReLU"), HasSubstr("check, new"));
}

class PluginNew : public testing::TestWithParam<std::string> {};

TEST_P(PluginNew, BuildsTrainsAndPassesItsCheck) {
  const Desk desk;
  const auto run = [&](const std::string& command) {
    const std::string log = (desk / "log.txt").string();
    const int status = std::system(
        fmt::format("cd '{}' && {} > '{}' 2>&1", (desk / "").string(), command, log).c_str());
    ASSERT_EQ(status, 0) << command << "\n" << desk.read("log.txt");
  };
  run(fmt::format("'{}' --install '{}' --prefix package --component sdk", TANDEM_CMAKE,
                  test::build_folder().string()));
  const std::string with = GetParam().empty() ? "" : " --with " + GetParam();
  const Outcome written = desk.tandem("plugin new acme.Own" + with);
  ASSERT_EQ(written.code, 0) << written.errors;
  EXPECT_THAT(written.output, HasSubstr("acme_own is written"));
  run(fmt::format(
      "'{}' -S acme_own -B acme_own/build -DCMAKE_PREFIX_PATH=\"$PWD/package\" "
      "-DCMAKE_CXX_COMPILER='{}' -DTANDEM_PROGRAM='{}'",
      TANDEM_CMAKE, TANDEM_CXX_COMPILER, (test::build_folder() / "bin/tandem").string()));
  run(fmt::format("'{}' --build acme_own/build", TANDEM_CMAKE));
  run("ctest --test-dir acme_own/build --output-on-failure");
  EXPECT_THAT(desk.read("log.txt"), HasSubstr("100% tests passed"));
  EXPECT_THAT(desk.refusal("plugin new acme.Own"), HasSubstr("acme_own exists already"));
}

INSTANTIATE_TEST_SUITE_P(Parts, PluginNew,
                         testing::Values("", "weights,two-inputs", "weights,random", "loss",
                                         "dataset", "c"),
                         [](const auto& info) {
                           std::string name = info.param.empty() ? "none" : info.param;
                           std::replace_if(
                               name.begin(), name.end(),
                               [](char c) { return c == ',' || c == '-'; }, '_');
                           return name;
                         });

TEST(PluginTemplate, RefusesNamesAndPartsThatDoNotWork) {
  const Desk desk;
  EXPECT_THAT(desk.refusal("plugin new Swish"), HasSubstr("a prefix of your own"));
  EXPECT_THAT(desk.refusal("plugin new acme.Swish --with wieghts"),
              HasSubstr("did you mean 'weights'?"));
  EXPECT_THAT(desk.refusal("plugin new acme.Swish --with loss,random"),
              HasSubstr("goes with no other part"));
}

}  // namespace
}  // namespace tandem
