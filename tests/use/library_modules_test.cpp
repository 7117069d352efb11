#include "core/use/library_modules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "tests/support/temp_folder.h"

namespace tandem {
namespace {

using test::TempFolder;
using testing::HasSubstr;
namespace fs = std::filesystem;

void let_all_write(const fs::path& path) {
  fs::permissions(path, fs::perms::others_write, fs::perm_options::add);
}

// Modules are looked for in a folder beside that of the plugins; an absolute one is itself.
class LibraryModule : public testing::Test {
 protected:
  void TearDown() override { unsetenv("TANDEM_TRUST_PLUGINS"); }
  // Why the only module is not loaded.
  [[nodiscard]] std::string failure() const {
    const LibraryModules modules = find_library_modules(folder_.string(), "entry", 8);
    EXPECT_TRUE(modules.tables.empty());
    EXPECT_EQ(modules.failures.size(), 1U);
    return modules.failures.empty() ? "" : modules.failures[0];
  }
  TempFolder folder_;
  fs::path file_ = folder_.write("library.so", "no library");
};

TEST_F(LibraryModule, InAFolderThatEveryUserMayWriteToIsNotLoaded) {
  EXPECT_THAT(failure(), HasSubstr("library.so: it is not a shared library"));
  let_all_write(folder_.path());
  EXPECT_THAT(failure(), HasSubstr("library.so: every user of this machine may write to its "
                                   "folder: chmod o-w '" +
                                   folder_.string()));
  setenv("TANDEM_TRUST_PLUGINS", "1", 1);
  EXPECT_THAT(failure(), HasSubstr("library.so: it is not a shared library"));
}

TEST_F(LibraryModule, ThatEveryUserMayWriteToIsNotLoaded) {
  let_all_write(file_);
  EXPECT_THAT(failure(), HasSubstr("every user of this machine may write to it: chmod o-w '" +
                                   file_.string()));
}

TEST_F(LibraryModule, ThatLinksToAFolderOfAllIsNotLoaded) {
  const TempFolder shared;
  (void)shared.write("library.so", "no library");
  let_all_write(shared.path());
  fs::remove(file_);
  fs::create_symlink(shared / "library.so", file_);
  EXPECT_THAT(failure(), HasSubstr("its folder: chmod o-w '" + shared.string()));
}

}  // namespace
}  // namespace tandem
