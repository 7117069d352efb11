// The types of the ABI beside what abidw said of them when their version was released
// (tests/stored_plugins/make): the current version has not changed, and since older ones fields
// have only been added at the ends of structs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "plugins/abi.h"
#include "tests/support/folders.h"
#include "tests/support/temp_folder.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using test::TempFolder;
using testing::HasSubstr;

struct Printed {
  int status = 0;
  std::string text;
};
Printed shell(const std::string& command) {
  Printed printed;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("cannot run " + command);
  std::array<char, 4096> buffer;
  while (fgets(buffer.data(), buffer.size(), pipe) != nullptr) printed.text += buffer.data();
  printed.status = pclose(pipe);
  return printed;
}

std::string stored(const std::string& file) {
  return (test::source_folder() / "tests/stored_plugins" / file).string();
}

class AbiDump : public testing::Test {
 protected:
  void SetUp() override {
    if (shell("abidiff --version").status != 0) {
      GTEST_SKIP() << "there is no abidiff (Debian: apt-get install abigail-tools)";
    }
#if !defined(__x86_64__)
    GTEST_SKIP() << "the dumps are of x86-64";
#endif
  }
  // The types of these headers, as a library with debug information.
  [[nodiscard]] std::string library(const std::string& headers) const {
    const std::string file = (folder_ / "abi.so").string();
    const Printed built = shell(std::string(TANDEM_C_COMPILER) + " -std=c11 -g -fPIC -shared -I '" +
                                headers + "' '" + stored("whole_abi.c") + "' -o '" + file + "'");
    EXPECT_EQ(built.status, 0) << built.text;
    return file;
  }
  static Printed compare(const std::string& dump, const std::string& library) {
    return shell("abidiff --leaf-changes-only --harmless '" + dump + "' '" + library + "'");
  }
  static std::string current_dump() {
    return "abi_" + std::to_string(TANDEM_ABI_MAJOR) + "_" + std::to_string(TANDEM_ABI_MINOR) +
           ".xml";
  }
  // The headers with one text replaced.
  [[nodiscard]] std::string changed(const std::string& header, const std::string& old_text,
                                    const std::string& new_text) const {
    const fs::path target = folder_ / "changed";
    fs::remove_all(target);
    fs::create_directories(target / "plugins");
    const fs::path plugins = test::source_folder() / "plugins";
    fs::copy(plugins / "abi", target / "plugins/abi");
    fs::copy(plugins / "abi.h", target / "plugins/abi.h");
    std::string text = test::read_text(target / "plugins" / header);
    const size_t at = text.find(old_text);
    EXPECT_NE(at, std::string::npos) << old_text;
    text.replace(at, old_text.size(), new_text);
    (void)folder_.write("changed/plugins/" + header, text);
    return target.string();
  }

 private:
  TempFolder folder_;
};

TEST_F(AbiDump, OfTheCurrentVersionHasNotChanged) {
  ASSERT_TRUE(fs::exists(stored(current_dump())))
      << "the version has been raised: tests/stored_plugins/make writes its dump";
  const Printed found = compare(stored(current_dump()), library(test::source_folder().string()));
  EXPECT_EQ(found.status, 0) << found.text
                             << "a changed ABI needs a new version (docs/reference/abi.md)";
}

TEST_F(AbiDump, SinceEveryOlderMinorFieldsHaveOnlyBeenAddedAtEnds) {
  const std::string now = library(test::source_folder().string());
  int seen = 0;
  for (const auto& entry : fs::directory_iterator(stored(""))) {
    const std::string name = entry.path().filename();
    if (!name.starts_with("abi_" + std::to_string(TANDEM_ABI_MAJOR) + "_")) continue;
    const std::string found = compare(entry.path(), now).text;
    EXPECT_THAT(found, testing::Not(HasSubstr("data member deletion"))) << name;
    EXPECT_THAT(found, testing::Not(HasSubstr("data member change"))) << name;
    ++seen;
  }
  EXPECT_GE(seen, 1);
}

// What the two tests above look for is what abidiff says.
TEST_F(AbiDump, TellsAFieldAtTheEndFromAnyOtherChange) {
  const std::string dump = stored(current_dump());
  const std::string layers = "abi/layers.h", last = "  uint32_t fuses_sum;";
  const Printed at_the_end = compare(dump, library(changed(layers, last, last + " int64_t more;")));
  EXPECT_NE(at_the_end.status, 0);
  EXPECT_THAT(at_the_end.text, HasSubstr("data member insertion"));
  EXPECT_THAT(at_the_end.text, testing::Not(HasSubstr("data member change")));
  for (const auto& [old_text, new_text] : std::vector<std::pair<std::string, std::string>>{
           {"  const char* device_kind;", "  void* more; const char* device_kind;"},
           {last, "  float fuses_sum;"},
           {"  void (*release)(void* handle);", "  void (*release)(void* handle, int how);"},
           {"  void (*release)(void* handle);", "  void (*released)(void* handle);"}}) {
    EXPECT_THAT(compare(dump, library(changed(layers, old_text, new_text))).text,
                HasSubstr("data member change"))
        << new_text;
  }
  EXPECT_THAT(compare(dump, library(changed(layers, last, ""))).text,
              HasSubstr("data member deletion"));
}

}  // namespace
}  // namespace tandem
