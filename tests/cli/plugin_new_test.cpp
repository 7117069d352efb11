// What `tandem plugin new` writes builds, passes its check and trains.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "tests/cli/program.h"
#include "tests/support/folders.h"

namespace tandem {
namespace {

using test::Desk;
using test::Outcome;
using testing::AllOf;
using testing::HasSubstr;

class PluginNew : public testing::TestWithParam<std::string> {};

TEST_P(PluginNew, BuildsTrainsAndPassesItsCheck) {
  if (GetParam() == "cuda" && std::system("nvcc --version > /dev/null 2>&1") != 0) {
    GTEST_SKIP() << "there is no nvcc";
  }
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
                                         "dataset", "c", "statistics", "mask", "cuda"),
                         [](const auto& info) {
                           std::string name = info.param.empty() ? "none" : info.param;
                           std::replace_if(
                               name.begin(), name.end(),
                               [](char c) { return c == ',' || c == '-'; }, '_');
                           return name;
                         });

TEST(PluginTemplate, RefusesANameInOneLineWithAnotherThatWouldDo) {
  const Desk desk;
  for (const auto& [name, similar] : {std::pair<std::string, std::string>{"class", "acme.class"},
                                      {"my-layer", "acme.my_layer"},
                                      {"1abc", "acme.abc"},
                                      {"ReLU", "acme.ReLU"},
                                      {"''", "acme.Swish"},
                                      {"own.1abc", "own.abc"},
                                      {"acme.", "acme.Swish"},
                                      {".Swish", "acme.Swish"},
                                      {"acme.Größe", "acme.Gr____e"},
                                      {"../x", "acme.x"}}) {
    const std::string refusal = desk.refusal("plugin new " + name);
    EXPECT_THAT(refusal, AllOf(HasSubstr("is no name for a layer type"),
                               testing::EndsWith("as " + similar)));
  }
  EXPECT_THAT(desk.refusal("plugin new acme." + std::string(300, 'a')),
              HasSubstr("has 305 characters: a name has 100 at most"));
  EXPECT_THAT(desk.refusal("plugin new tandem.backend_x"), HasSubstr("write one of your own"));
}

// Words of C++, of the standard library and of the SDK are names of layers like any other: those of
// classes only begin with them.
TEST(PluginTemplate, OfAKeywordOrAWordOfTheSdkCompiles) {
  const Desk desk;
  std::vector<std::pair<std::string, std::string>> cases;  // a word, and what the layer has
  for (const char* word : {"class", "int", "std", "tandem", "Plugin", "Layer", "NULL", "_"}) {
    cases.emplace_back(word, "weights,random");
  }
  for (const char* with : {"loss", "statistics", "mask", "dataset"}) {
    cases.emplace_back("class", with);
  }
  for (const auto& [word, with] : cases) {
    const Outcome written = desk.tandem("plugin new class." + word + " --with " + with);
    ASSERT_EQ(written.code, 0) << written.errors;
    std::string module = "class_" + word;
    std::transform(module.begin(), module.end(), module.begin(),
                   [](unsigned char c) { return std::tolower(c); });
    const std::string command = fmt::format(
        "cd '{0}' && mkdir -p include && ln -sfn '{1}' include/tandem && '{2}' -std=c++20 "
        "-I include -I '{1}' -fsyntax-only -Wall -Werror {3}/{3}.cpp > log.txt 2>&1; status=$?; "
        "rm -r {3}; exit $status",
        (desk / "").string(), test::source_folder().string(), TANDEM_CXX_COMPILER, module);
    ASSERT_EQ(std::system(command.c_str()), 0) << word << "\n" << desk.read("log.txt");
  }
}

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
