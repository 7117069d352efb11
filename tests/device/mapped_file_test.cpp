// Extended memory on the cpu: a file without a name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "core/base/error.h"
#include "core/device/mapped_file.h"

namespace tandem {
namespace {

class TmpDir {
 public:
  explicit TmpDir(const std::string& folder) {
    if (const char* before = std::getenv("TMPDIR")) before_ = before;
    setenv("TMPDIR", folder.c_str(), 1);
  }
  ~TmpDir() { before_.empty() ? unsetenv("TMPDIR") : setenv("TMPDIR", before_.c_str(), 1); }
  TmpDir(const TmpDir&) = delete;
  TmpDir& operator=(const TmpDir&) = delete;

 private:
  std::string before_;
};

TEST(MappedFile, BeginsWithZerosAndKeepsWhatIsWritten) {
  MappedFile file(10'000);
  EXPECT_EQ(file.data()[9'999], std::byte{0});
  file.data()[9'999] = std::byte{7};
  const MappedFile moved = std::move(file);
  EXPECT_EQ(moved.data()[9'999], std::byte{7});
  EXPECT_EQ(moved.bytes(), 10'000);
}

TEST(MappedFile, LeavesNothingInItsFolder) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / "tandem_mapped_file_test";
  std::filesystem::create_directories(folder);
  {
    const TmpDir set(folder);
    const MappedFile file(4096);
    EXPECT_TRUE(std::filesystem::is_empty(folder));
  }
  std::filesystem::remove_all(folder);
}

TEST(MappedFile, SaysWhichFolderCannotBeUsed) {
  const TmpDir set("/proc/no such folder");
  try {
    const MappedFile file(int64_t{3} << 20);
    FAIL() << "made a file where none can be";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(),
                testing::AllOf(testing::HasSubstr("/proc/no such folder"),
                               testing::HasSubstr("3 MiB"), testing::HasSubstr("TMPDIR")));
  }
}

}  // namespace
}  // namespace tandem
