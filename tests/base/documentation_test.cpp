// The documentation holds together: no link is dead, every page can be reached from the index,
// files that pages name and pages that sources name exist, and tables stay readable.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <functional>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/folders.h"

namespace tandem::test {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& file) {
  std::ifstream stream(file);
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

std::vector<fs::path> files_in(const fs::path& folder, const std::set<std::string>& extensions) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (extensions.contains(entry.path().extension().string())) files.push_back(entry.path());
  }
  return files;
}

std::vector<fs::path> pages() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(source_folder())) {
    if (entry.path().extension() == ".md") files.push_back(entry.path());
  }
  for (const char* folder : {"docs", "examples", "tests"}) {
    const std::vector<fs::path> more = files_in(source_folder() / folder, {".md"});
    files.insert(files.end(), more.begin(), more.end());
  }
  return files;
}

// The lines of a page that are prose: code blocks are left out.
void for_each_line(const fs::path& page,
                   const std::function<void(int number, const std::string& line)>& visit) {
  std::istringstream text(text_of(page));
  std::string line;
  bool in_code = false;
  for (int number = 1; std::getline(text, line); ++number) {
    if (line.starts_with("```")) in_code = !in_code;
    if (!in_code && !line.starts_with("    ")) visit(number, line);
  }
}

// "## Is it right?" is found as "is-it-right".
std::set<std::string> anchors_of(const fs::path& page) {
  std::set<std::string> anchors;
  for_each_line(page, [&](int, const std::string& line) {
    if (!line.starts_with("#")) return;
    std::string anchor;
    for (const char c : line.substr(line.find_first_not_of("# "))) {
      if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-') {
        anchor += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      } else if (c == ' ') {
        anchor += '-';
      }
    }
    anchors.insert(anchor);
  });
  return anchors;
}

// Targets of the links of a page that lead into this tree: "../README.md#install".
std::vector<std::string> links_of(const fs::path& page) {
  static const std::regex link(R"(\]\(([^)\s]+)\))");
  std::vector<std::string> targets;
  for_each_line(page, [&](int, const std::string& line) {
    for (std::sregex_iterator found(line.begin(), line.end(), link), end; found != end; ++found) {
      const std::string target = (*found)[1];
      if (target.find("://") == std::string::npos) targets.push_back(target);
    }
  });
  return targets;
}

fs::path target_of(const fs::path& page, const std::string& link) {
  const std::string file = link.substr(0, link.find('#'));
  return file.empty() ? page : (page.parent_path() / file).lexically_normal();
}

std::string name_of(const fs::path& file) {
  return file.lexically_relative(source_folder());
}

TEST(Documentation, HasNoDeadLink) {
  for (const fs::path& page : pages()) {
    for (const std::string& link : links_of(page)) {
      const fs::path target = target_of(page, link);
      ASSERT_TRUE(fs::exists(target)) << name_of(page) << " links to " << link;
      if (link.find('#') == std::string::npos) continue;
      EXPECT_THAT(anchors_of(target), testing::Contains(link.substr(link.find('#') + 1)))
          << name_of(page) << " links to " << link;
    }
  }
}

TEST(Documentation, IsReachedFromItsIndex) {
  const fs::path index = source_folder() / "docs/README.md";
  std::set<fs::path> listed{index};
  for (const std::string& link : links_of(index)) listed.insert(target_of(index, link));
  for (const fs::path& page : files_in(source_folder() / "docs", {".md"})) {
    EXPECT_TRUE(listed.contains(page)) << name_of(page) << " is not in docs/README.md";
  }
}

// `core/base/error.h` in a page: a file or folder of this tree.
TEST(Documentation, NamesFilesThatExist) {
  static const std::regex path(
      R"(`((core|include|plugins|layers|datasets|examples|tests|bench|scripts|cmake|docs)/[\w./-]*)`)");
  int named = 0;
  for (const fs::path& page : pages()) {
    for_each_line(page, [&](int number, const std::string& line) {
      for (std::sregex_iterator found(line.begin(), line.end(), path), end; found != end; ++found) {
        EXPECT_TRUE(fs::exists(source_folder() / (*found)[1].str()))
            << name_of(page) << ":" << number << " names " << (*found)[1];
        ++named;
      }
    });
  }
  EXPECT_GT(named, 50);
}

// In ARCHITECTURE.md, `name()` stands in one of the files that its paragraph names.
TEST(Documentation, NamesFunctionsThatExist) {
  static const std::regex code(R"(`([\w./:]+?)(\(\))?`)");
  std::istringstream page(text_of(source_folder() / "ARCHITECTURE.md"));
  std::set<std::string> functions;
  std::string texts;
  int named = 0;
  const auto check = [&] {
    for (const std::string& function : functions) {
      const std::string name = function.substr(function.rfind(':') + 1);
      EXPECT_TRUE(texts.find(name + "(") != std::string::npos)
          << "ARCHITECTURE.md names " << function << "(), which none of the files beside it has";
      ++named;
    }
    functions.clear();
    texts.clear();
  };
  for (std::string line; std::getline(page, line);) {
    if (line.empty() || std::regex_search(line, std::regex(R"(^(\d+\.|-|\|) )"))) check();
    for (std::sregex_iterator found(line.begin(), line.end(), code), end; found != end; ++found) {
      const std::string word = (*found)[1];
      const fs::path file = source_folder() / word;
      if ((*found)[2].matched) functions.insert(word);
      if (fs::is_regular_file(file)) texts += text_of(file);
      if (word == "model/passes")
        texts += text_of(source_folder() / "core/model/passes/build_net.h");
    }
  }
  check();
  EXPECT_GT(named, 15);
}

TEST(Documentation, HasThePagesThatSourcesName) {
  static const std::regex page(R"(docs/[a-z_/]+\.md)");
  int named = 0;
  for (const char* folder : {"core", "include", "plugins", "layers", "datasets", "examples",
                             "tests", "bench", "scripts", "cmake"}) {
    if (!fs::exists(source_folder() / folder)) continue;
    for (const fs::path& file :
         files_in(source_folder() / folder, {"", ".h", ".cpp", ".cu", ".cmake", ".py", ".txt"})) {
      if (!fs::is_regular_file(file)) continue;
      const std::string text = text_of(file);
      for (std::sregex_iterator found(text.begin(), text.end(), page), end; found != end; ++found) {
        EXPECT_TRUE(fs::exists(source_folder() / found->str()))
            << name_of(file) << " names " << found->str();
        ++named;
      }
    }
  }
  EXPECT_GT(named, 10);
}

}  // namespace
}  // namespace tandem::test
