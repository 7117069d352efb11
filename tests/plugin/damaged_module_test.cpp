// Modules that are damaged, of another machine, faulty, or where others may write: the program goes
// on without them.
#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <random>

#include "core/plugin/registry.h"
#include "core/plugin/trust.h"
#include "tests/plugin/test_plugins.h"
#include "tests/support/temp_folder.h"

namespace tandem {
namespace {

using test::plugin;
using test::read_text;
using test::TempFolder;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

namespace fs = std::filesystem;

// What is remembered of modules is in a folder of the test.
class DamagedModule : public testing::Test {
 protected:
  DamagedModule() { setenv("XDG_CACHE_HOME", cache_.string().c_str(), 1); }
  ~DamagedModule() override { unsetenv("XDG_CACHE_HOME"); }
  DamagedModule(const DamagedModule&) = delete;
  DamagedModule& operator=(const DamagedModule&) = delete;

  [[nodiscard]] ModuleReport report_of(const std::string& bytes) {
    Registry registry;
    return registry.load(folder_.write(std::to_string(++count_) + ".so", bytes));
  }
  void load_changed();
  [[nodiscard]] size_t remembered() const {
    const fs::path names = cache_.path() / "tandem/modules";
    if (!fs::exists(names)) return 0;
    return static_cast<size_t>(std::distance(fs::directory_iterator(names), {}));
  }

  TempFolder folder_, cache_;
  const std::string good_ = read_text(plugin("good"));
  int count_ = 0;
};

TEST_F(DamagedModule, CutAtAnyLengthIsRefused) {
  for (size_t length = 0; length < good_.size(); length += 97) {
    const ModuleReport report = report_of(good_.substr(0, length));
    EXPECT_FALSE(report.loaded) << length;
    EXPECT_THAT(report.reason, testing::AnyOf(HasSubstr("damaged or not complete"),
                                              HasSubstr("not a shared library")))
        << length;
  }
}

// Where a byte of code or data has changed, a module may load, or end only the child. A process of
// its own, since what the end of a process calls in a module may have changed, too.
TEST_F(DamagedModule, WithChangedBytesEndsNothing) {
  EXPECT_EXIT(
      {
        load_changed();
        ::_exit(0);
      },
      testing::ExitedWithCode(0), "");
}

void DamagedModule::load_changed() {
  std::mt19937 random(7);
  for (int i = 0; i < 200; ++i) {
    std::string bytes = good_;
    const size_t tables = i % 2 == 0 ? bytes.size() : size_t{4096};
    for (int change = 0; change < 8; ++change) {
      bytes[random() % tables] = static_cast<char>(random());
    }
    const ModuleReport report = report_of(bytes);
    if (report.loaded != report.reason.empty()) ::_exit(1);
  }
}

TEST_F(DamagedModule, OfAnotherKindOfProcessorIsRefusedWithTheFix) {
  std::string bytes = good_;
  const uint16_t sparc = EM_SPARC;
  std::memcpy(bytes.data() + offsetof(Elf64_Ehdr, e_machine), &sparc, sizeof sparc);
  EXPECT_THAT(report_of(bytes).reason, AllOf(HasSubstr("another kind of processor"),
                                             HasSubstr("rebuild it on this machine")));
  bytes = good_;
  bytes[EI_CLASS] = bytes[EI_CLASS] == ELFCLASS64 ? ELFCLASS32 : ELFCLASS64;
  EXPECT_THAT(report_of(bytes).reason, HasSubstr("another kind of processor"));
}

TEST_F(DamagedModule, ThatCrashesOrExitsEndsOnlyAChild) {
  Registry registry;
#if defined(__SANITIZE_ADDRESS__)  // which ends it instead
  const char* crash = "it ends the program with exit code";
#else
  const char* crash = "it crashes when it is loaded (signal 11: Segmentation fault)";
#endif
  EXPECT_THAT(registry.load(plugin("crashes")).reason, StartsWith(crash));
  EXPECT_THAT(registry.load(plugin("exits")).reason,
              StartsWith("it ends the program with exit code 0 when it is loaded"));
  EXPECT_TRUE(registry.load(plugin("good")).loaded);
}

TEST_F(DamagedModule, IsTriedUntilItLoadsAndThenRemembered) {
  Registry registry;
  (void)registry.load(plugin("crashes"));
  EXPECT_EQ(remembered(), 0u);
  EXPECT_TRUE(registry.load(plugin("good")).loaded);
  EXPECT_EQ(remembered(), 1u);
  EXPECT_TRUE(report_of(good_).loaded) << "another file with the same bytes";
  EXPECT_EQ(remembered(), 1u);
  EXPECT_TRUE(report_of(good_ + " ").loaded);
  EXPECT_EQ(remembered(), 2u);
}

TEST_F(DamagedModule, OfTandemsOwnAreNotTriedInAChild) {
  Registry registry;
  EXPECT_TRUE(registry.load(test::plugin_folder() / "tandem_layer_relu.so").loaded);
  EXPECT_EQ(remembered(), 0u);
}

TEST(Trust, IsThatOfStrictModes) {
  const TempFolder folder;
  const fs::path file = folder.write("above/in/x.so", "");
  const fs::path in = file.parent_path(), above = in.parent_path();
  for (const fs::path& path : {file, in, above}) ::chmod(path.c_str(), 0755);
  EXPECT_EQ(why_not_trusted(file, false), "");
  ::chmod(above.c_str(), 0777);
  EXPECT_THAT(why_not_trusted(file, false),
              AllOf(HasSubstr("every user of this machine may write to a folder above it"),
                    HasSubstr("chmod o-w '" + above.string() + "', or set TANDEM_TRUST")));
  EXPECT_EQ(why_not_trusted(file, true), "") << "whoever may write there may replace the program";
  ::chmod(above.c_str(), 01777);
  EXPECT_EQ(why_not_trusted(file, false), "") << "of others' files nobody may remove any there";
  ::chmod(above.c_str(), 0755);
  ::chmod(in.c_str(), 01777);
  EXPECT_THAT(why_not_trusted(file, false), HasSubstr("may write to its folder"));
  ::chmod(in.c_str(), 0755);
  ::chmod(file.c_str(), 0757);
  EXPECT_THAT(why_not_trusted(file, false), HasSubstr("may write to it: chmod o-w"));
  EXPECT_THAT(why_not_trusted(file, true), HasSubstr("may write to it: chmod o-w"));
}

TEST(Trust, EndsWhereAGroupMayWriteOrAnotherUserOwns) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  const TempFolder folder;
  const fs::path file = folder.write("in/x.so", "");
  const fs::path in = file.parent_path();
  ::chmod(file.c_str(), 0644);
  ::chmod(in.c_str(), 0775);
  EXPECT_EQ(why_not_trusted(file, false), "") << "the group has the name of the owner";
  constexpr uid_t other = 4711;
  ASSERT_EQ(::chown(in.c_str(), 0, other), 0);
  EXPECT_THAT(why_not_trusted(file, false),
              AllOf(HasSubstr("every member of group 4711 may write to its folder"),
                    HasSubstr("chmod g-w '" + in.string())));
  ::chmod(in.c_str(), 0755);
  EXPECT_EQ(why_not_trusted(file, false), "");
  ASSERT_EQ(::chown(in.c_str(), other, 0), 0);
  EXPECT_THAT(why_not_trusted(file, false),
              HasSubstr("user 4711, neither root nor you, owns its folder: chown root"));
  ASSERT_EQ(::chown(in.c_str(), 0, 0), 0);
  ASSERT_EQ(::chown(file.c_str(), other, 0), 0);
  EXPECT_THAT(why_not_trusted(file, false), HasSubstr("owns it: chown root"));
}

}  // namespace
}  // namespace tandem
