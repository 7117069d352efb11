// The ABI's promises about files: abi.h is plain C, and every module exports one symbol.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/folders.h"
#include "tests/support/temp_folder.h"

namespace tandem {
namespace {

using test::TempFolder;
using testing::ElementsAre;

namespace fs = std::filesystem;

struct Outcome {
  int status = 0;
  std::string output;  // both streams
};

Outcome run(const std::string& command) {
  Outcome outcome;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("cannot run " + command);
  std::array<char, 4096> buffer;
  while (fgets(buffer.data(), buffer.size(), pipe) != nullptr) outcome.output += buffer.data();
  outcome.status = pclose(pipe);
  return outcome;
}

std::string compile_as_c(const std::string& header) {
  const TempFolder folder;
  const fs::path file = folder.write("use.c", "#include \"" + header + "\"\nint used;\n");
  const Outcome outcome = run(std::string(TANDEM_C_COMPILER) +
                              " -std=c11 -pedantic -Wall -Wextra -Werror -fsyntax-only -I '" +
                              test::source_folder().string() + "' '" + file.string() + "'");
  return outcome.status == 0 ? "" : outcome.output + "failed";
}

TEST(Abi, AbiHeaderIsPedanticC11) {
  EXPECT_EQ(compile_as_c("plugins/abi.h"), "");
}

TEST(Abi, RandomHeaderIsPedanticC11) {
  EXPECT_EQ(compile_as_c("plugins/random.h"), "");
}

TEST(Abi, EachOfItsHeadersIsPedanticC11) {
  for (const char* part : {"common", "layers", "datasets", "backends", "transports"}) {
    EXPECT_EQ(compile_as_c(std::string("plugins/abi/") + part + ".h"), "") << part;
  }
}

TEST(Abi, ItsHeadersIncludeTwoStandardHeadersAndEachOther) {
  std::set<std::string> includes;
  std::vector<fs::path> headers{test::source_folder() / "plugins/abi.h"};
  for (const auto& entry : fs::directory_iterator(test::source_folder() / "plugins/abi")) {
    headers.push_back(entry.path());
  }
  EXPECT_EQ(headers.size(), 6u);
  for (const fs::path& header : headers) {
    std::istringstream text(test::read_text(header));
    for (std::string line; std::getline(text, line);) {
      if (line.starts_with("#include")) includes.insert(line);
    }
  }
  EXPECT_THAT(includes, ElementsAre("#include \"abi/backends.h\"", "#include \"abi/common.h\"",
                                    "#include \"abi/datasets.h\"", "#include \"abi/layers.h\"",
                                    "#include \"abi/transports.h\"", "#include \"common.h\"",
                                    "#include <stddef.h>", "#include <stdint.h>"));
}

std::vector<std::string> exported_symbols(const fs::path& module) {
  const Outcome outcome =
      run(std::string(TANDEM_NM) + " -D --defined-only '" + module.string() + "'");
  std::istringstream lines(outcome.output);
  std::vector<std::string> symbols;
  for (std::string address, type, name; lines >> address >> type >> name;) symbols.push_back(name);
  return symbols;
}

TEST(Abi, EveryBuiltModuleExportsItsEntryAndNothingElse) {
  int seen = 0;
  for (const fs::path& folder : {test::plugin_folder(), test::sample_plugin_folder()}) {
    std::error_code missing;
    for (const auto& entry : fs::directory_iterator(folder, missing)) {
      EXPECT_THAT(exported_symbols(entry.path()), ElementsAre("tandem_plugin_entry"))
          << entry.path();
      ++seen;
    }
  }
  EXPECT_GE(seen, 2) << "not even the samples were built";
}

}  // namespace
}  // namespace tandem
