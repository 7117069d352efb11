// The ABI's promises about files: abi.h is plain C, every module exports one symbol, and a file
// includes only its own layer and lower ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <map>
#include <regex>
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
using testing::IsEmpty;

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

struct Include {
  std::string where;  // file:line
  std::string name;
  bool quoted = false;
};

// The includes of all sources under `folder` of the source tree.
std::vector<Include> includes_under(const std::string& folder) {
  std::vector<Include> found;
  const fs::path root = test::source_folder();
  if (!fs::exists(root / folder)) return found;
  for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
    const std::string extension = entry.path().extension();
    if (extension != ".h" && extension != ".cpp" && extension != ".c" && extension != ".cu")
      continue;
    std::istringstream text(test::read_text(entry.path()));
    int number = 0;
    for (std::string line; std::getline(text, line);) {
      ++number;
      if (!line.starts_with("#include ") || line.size() < 11) continue;
      const size_t end = line.find_first_of(">\"", 10);
      found.push_back({fs::relative(entry.path(), root).string() + ":" + std::to_string(number),
                       line.substr(10, end - 10), line[9] == '"'});
    }
  }
  return found;
}

// The layer of the architecture of a folder, or of the nearest folder above it that has one.
std::map<std::string, int>::const_iterator find_layer(const std::map<std::string, int>& layers,
                                                      std::string folder) {
  while (!layers.contains(folder) && folder.find('/') != std::string::npos) {
    folder.resize(folder.rfind('/'));
  }
  return layers.find(folder);
}

// "core/base/error.h" -> "core/base"; "plugins/abi.h" -> "plugins".
std::string folder_of(const std::string& path) {
  return fs::path(path).parent_path().string();
}

const std::map<std::string, int> layer_of_folder{
    {"plugins", 0},
    {"include/tandem", 0},
    {"core/base", 1},
    {"core/device", 2},
    {"core/plugin", 2},
    {"core/model", 3},
    {"core/data", 3},
    {"core/schedule/plan", 4},
    {"core/schedule/cost", 5},
    {"core/schedule/builder", 6},
    {"core/schedule/execution", 7},
    {"core/schedule/report", 8},
    {"core/schedule/strategies", 9},
    {"core/train", 10},
    {"core/cli", 11},
    {"core", 11},
};

TEST(Architecture, ACoreFileIncludesOnlyItsOwnLayerAndLowerOnes) {
  const std::vector<Include> includes = includes_under("core");
  EXPECT_GT(includes.size(), 20u);
  for (const Include& include : includes) {
    if (!include.quoted) continue;
    const auto target = find_layer(layer_of_folder, folder_of(include.name));
    const auto source = find_layer(layer_of_folder, folder_of(include.where));
    ASSERT_NE(source, layer_of_folder.end())
        << include.where << " belongs to no layer of the architecture";
    ASSERT_NE(target, layer_of_folder.end())
        << include.where << " includes \"" << include.name << "\", which is no module of core";
    EXPECT_LE(target->second, source->second)
        << include.where << " includes \"" << include.name << "\" from a higher layer";
  }
}

// The way by which `file` includes itself; empty if it does not. `done`: files known not to.
std::vector<std::string> circle_from(
    const std::map<std::string, std::vector<std::string>>& includes_of, const std::string& file,
    std::vector<std::string>& way, std::set<std::string>& done) {
  if (done.contains(file)) return {};
  const auto again = std::find(way.begin(), way.end(), file);
  if (again != way.end()) return {again, way.end()};
  way.push_back(file);
  if (const auto found = includes_of.find(file); found != includes_of.end()) {
    for (const std::string& included : found->second) {
      const std::vector<std::string> circle = circle_from(includes_of, included, way, done);
      if (!circle.empty()) return circle;
    }
  }
  way.pop_back();
  done.insert(file);
  return {};
}

TEST(Architecture, NoHeaderOfCoreIncludesItselfThroughOthers) {
  std::map<std::string, std::vector<std::string>> includes_of;
  for (const Include& include : includes_under("core")) {
    if (!include.quoted) continue;
    includes_of[include.where.substr(0, include.where.rfind(':'))].push_back(include.name);
  }
  std::set<std::string> done;
  for (const auto& [file, includes] : includes_of) {
    std::vector<std::string> way;
    EXPECT_THAT(circle_from(includes_of, file, way, done), IsEmpty()) << "a circle of includes";
  }
}

TEST(Architecture, APublicHeaderIncludesOnlyItsOwnFolder) {
  EXPECT_GT(includes_under("include/tandem").size(), 5u);
  for (const Include& include : includes_under("include/tandem")) {
    if (!include.quoted) continue;
    EXPECT_EQ(folder_of(include.name), "")
        << include.where << " includes \"" << include.name << '"';
  }
}

// Of what lies at the ABI core includes what both sides must agree on, and no backend's folder.
TEST(Architecture, CoreIncludesOfPluginsTheAbiAndTheModelsThatBothSidesUse) {
  const std::set<std::string> shared{
      "plugins/abi.h",          "plugins/random.h",  // what a plugin may rely on
      "plugins/simulation.h",                        // the one model of links and virtual time
      "plugins/pixels.h",                            // the one conversion of bytes to activations
      "plugins/center_crop.h",                       // the part of a picture that a net sees
      "plugins/resampling.h",                        // what a resized pixel is made of
      "plugins/regular_file.h",                      // the one way to open a file to read
      "plugins/path_status.h",                       // the one way to ask what a path is
      "plugins/onnx/runner.h",   // the table of a library that runs exported nets
      "plugins/video/reader.h",  // the table of a library that reads videos
  };
  for (const Include& include : includes_under("core")) {
    if (!include.name.starts_with("plugins/")) continue;
    EXPECT_TRUE(shared.contains(include.name)) << include.where << ": " << include.name;
  }
}

// The lines of core in which `pattern` is found: "core/cli/main.cpp:12: <line>".
std::vector<std::string> lines_of_core(const std::string& pattern) {
  const std::regex expression(pattern, std::regex::icase | std::regex::optimize);
  std::vector<std::string> found;
  const fs::path root = test::source_folder();
  for (const auto& entry : fs::recursive_directory_iterator(root / "core")) {
    const std::string extension = entry.path().extension();
    if (extension != ".h" && extension != ".cpp") continue;
    std::istringstream text(test::read_text(entry.path()));
    int number = 0;
    for (std::string line; std::getline(text, line);) {
      ++number;
      if (!std::regex_search(line, expression)) continue;
      found.push_back(fs::relative(entry.path(), root).string() + ":" + std::to_string(number) +
                      ": " + line);
    }
  }
  return found;
}

TEST(Architecture, CoreKnowsNoVendor) {
  EXPECT_THAT(lines_of_core("cuda|cudnn|cublas|nccl|nvml|nvidia|dnnl|onednn|opencv|omp\\.h"),
              testing::IsEmpty());
}

// It asks backends what they offer. It names only the kinds to use where the user names none.
TEST(Architecture, CoreNamesNoBackend) {
  EXPECT_THAT(lines_of_core("^[^/]*\"(cpu|sim)(:[0-9{}]*)?\""),
              ElementsAre(testing::HasSubstr("const char* default_kind = "),
                          testing::HasSubstr("const char* simulator_kind = ")));
}

// What stands below the ABI: it may include what its own folder holds, headers of other layers and
// what layers or data sets share, and helpers of its device kind's folder in plugins/ (headers
// only: a module links no other module).
void expect_only_abi_headers(const std::string& folder) {
  for (const Include& include : includes_under(folder)) {
    if (!include.quoted) continue;
    const bool is_up = include.name.starts_with("../");
    const fs::path up = (fs::path(folder_of(include.where)) / include.name).lexically_normal();
    const std::string target = folder_of(is_up ? up.string() : include.name);  // "": its own
    const bool is_own =
        !is_up && fs::exists(test::source_folder() / folder_of(include.where) / include.name);
    EXPECT_TRUE(is_own || target == folder_of(include.where) || target.starts_with("plugins") ||
                target.starts_with("layers") || target == "datasets/picture")
        << include.where << " includes \"" << include.name << "\"";
  }
}

TEST(Architecture, PluginsIncludeNothingAboveTheAbi) {
  EXPECT_GT(includes_under("plugins").size(), 5u);
  expect_only_abi_headers("plugins");
}

TEST(Architecture, DatasetsIncludeNothingAboveTheAbi) {
  expect_only_abi_headers("datasets");
}

TEST(Architecture, LayersIncludeNothingAboveTheAbi) {
  expect_only_abi_headers("layers");
}

TEST(Architecture, QuotedIncludesAreNeverWrittenWithAngleBrackets) {
  for (const char* folder : {"core", "plugins", "layers", "datasets"}) {
    for (const Include& include : includes_under(folder)) {
      if (include.quoted) continue;
      for (const char* folder_name : {"core/", "plugins/", "layers/", "datasets/", "tests/"}) {
        EXPECT_FALSE(include.name.starts_with(folder_name))
            << include.where << ": " << include.name;
      }
    }
  }
}

}  // namespace
}  // namespace tandem
