// The structure of the tree: a file includes only its own folder and lower ones, no more than two
// files include each other, no folder is too large, and what stands below the ABI knows nothing
// above it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
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

using testing::ElementsAre;
using testing::IsEmpty;

namespace fs = std::filesystem;

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

// "core/base/error.h" -> "core/base"; "plugins/abi.h" -> "plugins".
std::string folder_of(const std::string& path) {
  return fs::path(path).parent_path().string();
}

// The folders of core from the lowest to the highest. A file includes its own folder and those
// above it in this list. ARCHITECTURE.md says what each holds.
const std::vector<std::string> folders_of_core{
    "core/base",
    "core/base/text",
    "core/base/numbers",
    "core/base/files",
    "core/plugin",
    "core/device",
    "core/model/file",
    "core/model/adapted",
    "core/model/net",
    "core/model/passes",
    "core/formats",
    "core/formats/onnx",
    "core/formats/onnx_reader",
    "core/data",
    "core/data/audit",
    "core/data/loader",
    "core/check/layer",
    "core/check/cases",
    "core/check/promises",
    "core/check",
    "core/schedule/plan",
    "core/schedule/cost",
    "core/schedule/builder",
    "core/schedule/strategies/common",
    "core/schedule/strategies/composed",
    "core/schedule/strategies/data_parallel",
    "core/schedule/strategies/fc_parallel",
    "core/schedule/strategies/asymmetric",
    "core/schedule/strategies/hybrid",
    "core/schedule/strategies/mixed",
    "core/schedule/strategies",
    "core/schedule/kernels",
    "core/schedule/execution",
    "core/schedule/report",
    "core/ranks",
    "core/session",
    "core/run/folder",
    "core/run/weights",
    "core/run/setup",
    "core/report/page",
    "core/report",
    "core/run",
    "core/use",
    "core/cli",
    "core/cli/commands",
};

// -1: in no folder of the list.
int height_of(const std::string& file) {
  const auto found = std::find(folders_of_core.begin(), folders_of_core.end(), folder_of(file));
  return found == folders_of_core.end() ? -1 : static_cast<int>(found - folders_of_core.begin());
}

TEST(Architecture, ACoreFileIncludesOnlyItsOwnFolderAndLowerOnes) {
  const std::vector<Include> includes = includes_under("core");
  EXPECT_GT(includes.size(), 20u);
  for (const Include& include : includes) {
    EXPECT_GE(height_of(include.where), 0) << include.where << " is in no folder of the list";
    if (!include.quoted || !include.name.starts_with("core/")) continue;
    EXPECT_LE(height_of(include.name), height_of(include.where))
        << include.where << " includes \"" << include.name << "\" from a higher folder";
  }
}

TEST(Architecture, AFolderOfCoreHoldsAtMost30Files) {
  for (const std::string& folder : folders_of_core) {
    const fs::directory_iterator entries(test::source_folder() / folder);
    const auto files = std::count_if(begin(entries), end(entries),
                                     [](const auto& entry) { return entry.is_regular_file(); });
    EXPECT_GT(files, 0) << folder << " is empty: take it from the list";
    EXPECT_LE(files, 30) << folder << ": a folder is one idea; divide it";
  }
}

TEST(Architecture, ItsPageNamesEveryFolderOfCore) {
  const std::string page = test::read_text(test::source_folder() / "ARCHITECTURE.md");
  for (const std::string& folder : folders_of_core) {
    EXPECT_NE(page.find("`" + folder.substr(5) + "`"), std::string::npos) << folder;
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

// "core/base/error.cpp" -> "core/base/error": a header and its source are one.
std::string unit_of(const std::string& file) {
  return file.substr(0, file.rfind('.'));
}

using Graph = std::map<std::string, std::set<std::string>>;

std::set<std::string> reached_from(const Graph& graph, const std::string& unit) {
  std::set<std::string> reached;
  std::vector<std::string> open{unit};
  while (!open.empty()) {
    const auto next = graph.find(open.back());
    open.pop_back();
    if (next == graph.end()) continue;
    for (const std::string& other : next->second) {
      if (reached.insert(other).second) open.push_back(other);
    }
  }
  return reached;
}

// A type and its helper may need each other; more than two cannot be read one after the other.
TEST(Architecture, NoMoreThanTwoHeadersWithTheirSourcesIncludeEachOther) {
  Graph graph;
  for (const Include& include : includes_under("core")) {
    const std::string unit = unit_of(include.where);
    if (include.quoted && unit_of(include.name) != unit) graph[unit].insert(unit_of(include.name));
  }
  std::map<std::string, std::set<std::string>> reached;
  for (const auto& [unit, others] : graph) reached[unit] = reached_from(graph, unit);
  std::set<std::set<std::string>> circles;
  for (const auto& [unit, others] : reached) {
    std::set<std::string> circle;
    for (const std::string& other : others) {
      if (reached[other].contains(unit)) circle.insert(other);
    }
    if (circle.size() > 2) circles.insert(circle);
  }
  EXPECT_THAT(circles, IsEmpty());
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
      "plugins/text.h",                              // order, nearness and UTF-8 of names
      "plugins/plain_text.h",                        // text files and blanks
      "plugins/cells.h",                             // names in files that a spreadsheet opens
      "plugins/composed.h",                          // letters with accents
      "plugins/class_names.h",                       // files of class names
      "plugins/fnv.h",                               // the one hash of names, plans and files
      "plugins/regular_file.h",                      // the one way to open a file to read
      "plugins/path_status.h",                       // the one way to ask what a path is
      "plugins/processors.h",                        // the cores that a process may use
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

// But for the words that net files of other programs hold.
TEST(Architecture, CoreKnowsNoVendor) {
  std::vector<std::string> lines =
      lines_of_core("cuda|cudnn|cublas|nccl|nvml|nvidia|dnnl|onednn|opencv|omp\\.h");
  std::erase_if(lines, [](const std::string& line) {
    return line.starts_with("core/model/file/forks.cpp:");
  });
  EXPECT_THAT(lines, testing::IsEmpty());
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
