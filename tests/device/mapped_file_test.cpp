// Extended memory on the cpu: a file without a name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "core/base/error.h"
#include "core/device/mapped_file.h"
#include "tests/support/emulation.h"

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

std::string message_for(const std::string& place, int64_t bytes = 4096) {
  try {
    const MappedFile file(bytes, place);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(MappedFile, IsInTheFolderThatIsNamed) {
  EXPECT_EQ(message_for("/tmp"), "");
  EXPECT_THAT(message_for("/proc/none"), testing::HasSubstr("folder '/proc/none'"));
  EXPECT_THAT(message_for("/dev/zero"), testing::HasSubstr("give numa:N"));
}

TEST(MappedFile, IsInTheMemoryOfTheNumaNodeThatIsNamed) {
  TANDEM_SKIP_IF_EMULATED("qemu-user has no mbind");
  if (!std::filesystem::exists("/sys/devices/system/node/node0")) {
    GTEST_SKIP() << "the kernel has no NUMA nodes";
  }
  constexpr int64_t bytes = 3 << 20;
  try {
    MappedFile file(bytes, "numa:0");
    EXPECT_EQ(MappedFile::numa_node_of(file.data() + bytes - 1), 0);
    EXPECT_EQ(file.data()[bytes - 1], std::byte{0});
    file.data()[bytes - 1] = std::byte{7};
    const MappedFile moved = std::move(file);
    EXPECT_EQ(moved.data()[bytes - 1], std::byte{7});
  } catch (const Error& refused) {
    if (std::string(refused.what()).find("not permitted") == std::string::npos) throw;
    GTEST_SKIP() << "containers may forbid it: " << refused.what();
  }
}

TEST(MappedFile, RefusesANodeThatIsNotThereOrHasNoRoom) {
  for (const char* none : {"numa:999", "numa:-1", "numa:x", "numa:"}) {
    EXPECT_THAT(message_for(none), testing::HasSubstr("no such NUMA node")) << none;
  }
  if (!std::filesystem::exists("/sys/devices/system/node/node0")) return;
  EXPECT_THAT(message_for("numa:0", int64_t{1} << 50), testing::HasSubstr("NUMA node 0"));
}

}  // namespace
}  // namespace tandem
