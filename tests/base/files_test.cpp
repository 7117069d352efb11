#include "core/base/files/files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/message_of.h"
#include "tests/support/sparse_files.h"
#include "tests/support/temp_folder.h"

namespace tandem {
namespace {

using test::message_of;
using test::TempFolder;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> lines_of(const std::filesystem::path& path) {
  std::vector<std::string> lines;
  read_lines(path, [&](const std::string& line) { lines.push_back(line); });
  return lines;
}

TEST(Lines, AreReadOneByOneWhereverPiecesEnd) {
  const TempFolder folder;
  EXPECT_THAT(lines_of(folder.write("a", "")), IsEmpty());
  EXPECT_THAT(lines_of(folder.write("a", "one\n\nthree")), ElementsAre("one", "", "three"));
  for (const size_t length : {65534, 65535, 65536, 65537, 200000}) {
    const std::string line(length, 'x');
    EXPECT_THAT(lines_of(folder.write("a", line + "\nlast\n")), ElementsAre(line, "last"));
  }
}

// As after a failure of the power, or planted.
TEST(Lines, OfAHoleInTheFileAreLeftOutAndTakeNoMemory) {
  const TempFolder folder;
  test::write_sparse(folder / "a", "first\n", uint64_t{1} << 30);
  const int64_t before = test::peak_memory();
  const std::vector<std::string> lines = lines_of(folder / "a");
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0], "first");
  EXPECT_LT(test::peak_memory() - before, int64_t{256} << 20);
  test::write_sparse(folder / "a", "", uint64_t{1} << 33);
  EXPECT_THAT(message_of([&] { (void)lines_of(folder / "a"); }),
              HasSubstr("has 8589934592 bytes, too many: at most 4294967296 are read"));
}

void write_as(const std::filesystem::path& path, const std::string& text) {
  OutputFile file(pending_file(path), path);
  file.write(text.data(), text.size());
  file.finish_as(path);
}

TEST(OutputFile, IsWrittenByOneProcessAtATime) {
  const TempFolder folder;
  const std::filesystem::path path = folder / "weights";
  OutputFile first(pending_file(path), path);
  first.write("half", 4);
  EXPECT_EQ(message_of([&] { write_as(path, "other"); }),
            "file '" + path.string() + "' cannot be created: another process is writing it");
  first.write(" and half", 9);
  first.finish_as(path);
  EXPECT_EQ(read_text_file(path), "half and half");
  write_as(path, "other");
  EXPECT_EQ(read_text_file(path), "other");
}

TEST(OutputFile, ReplacesWhatAKillHasLeft) {
  const TempFolder folder;
  const std::filesystem::path path = folder / "weights";
  static_cast<void>(folder.write("weights.new", "left"));
  write_as(path, "whole");
  EXPECT_EQ(read_text_file(path), "whole");
  EXPECT_FALSE(std::filesystem::exists(pending_file(path)));
}

// The next file of its name may be another process's.
TEST(OutputFile, ThatIsGivenUpRemovesNoFileButItsOwn) {
  const TempFolder folder;
  const std::filesystem::path path = folder / "weights";
  {
    const OutputFile given_up(path);
    std::filesystem::remove(path);
    static_cast<void>(folder.write("weights", "another's"));
  }
  EXPECT_EQ(read_text_file(path), "another's");
  { const OutputFile given_up(path); }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(OutputFile, SaysWhyItCannotReplaceWhatAKillHasLeft) {
  if (geteuid() == 0) GTEST_SKIP() << "root removes everything";
  const TempFolder folder;
  static_cast<void>(folder.write("weights.new", "left"));
  std::filesystem::permissions(
      folder.path(), std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  const std::string message = message_of([&] { write_as(folder / "weights", "text"); });
  std::filesystem::permissions(folder.path(), std::filesystem::perms::owner_all);
  EXPECT_THAT(message, HasSubstr("cannot be created: Permission denied"));
}

TEST(OutputFile, LeavesNothingWhereItCannotHaveItsName) {
  const TempFolder folder;
  const std::filesystem::path path = folder / "weights";
  std::filesystem::create_directories(path / "in the way");
  EXPECT_THAT(message_of([&] { write_as(path, "text"); }), HasSubstr("cannot be replaced"));
  EXPECT_FALSE(std::filesystem::exists(pending_file(path)));
}

// ---- what another user has planted where the file is written until it is complete

TEST(OutputFile, IsNotWrittenIntoAPipeOrADevice) {
  const TempFolder folder;
  const std::filesystem::path path = folder / "weights", pending = pending_file(path);
  static_cast<void>(folder.write("weights", "old"));
  const auto refusal = [&] { return message_of([&] { write_as(path, "secret"); }); };
  const std::string expected =
      "file '" + path.string() + "' cannot be created: '" + pending.string() + "' is in the way, ";
  ASSERT_EQ(mkfifo(pending.c_str(), 0666), 0);
  const int reader = open(pending.c_str(), O_RDONLY | O_NONBLOCK);
  EXPECT_EQ(refusal(), expected + "which is a pipe: remove it");
  char byte = 0;
  EXPECT_EQ(read(reader, &byte, 1), 0);
  close(reader);
  EXPECT_TRUE(std::filesystem::is_fifo(pending));
  std::filesystem::remove(pending);
  std::filesystem::create_directory(pending);
  EXPECT_EQ(refusal(), expected + "which is a folder: remove it");
  EXPECT_EQ(message_of([&] { const OutputFile file("/dev/full"); }),
            "file '/dev/full' cannot be created: '/dev/full' is in the way, which is a device: "
            "remove it");
  EXPECT_EQ(read_text_file(path), "old");
}

TEST(OutputFile, ReplacesALinkAndLeavesWhatItLeadsTo) {
  const TempFolder folder;
  const std::filesystem::path path = folder / "weights";
  const auto other = folder.write("other", "precious");
  for (const std::string& target : {other.string(), std::string("/dev/full")}) {
    std::filesystem::create_symlink(target, pending_file(path));
    write_as(path, "whole");
    EXPECT_TRUE(std::filesystem::is_regular_file(std::filesystem::symlink_status(path)));
  }
  EXPECT_EQ(read_text_file(path), "whole");
  EXPECT_EQ(read_text_file(other), "precious");
}

// What has taken its name meanwhile does not take that of the file.
TEST(OutputFile, ThatHasLostItsNameReplacesNothing) {
  const TempFolder folder;
  const std::filesystem::path path = folder / "weights", pending = pending_file(path);
  static_cast<void>(folder.write("weights", "old"));
  for (const bool is_link : {false, true}) {
    OutputFile file(pending, path);
    file.write("new", 3);
    std::filesystem::rename(pending, folder / "moved");
    if (is_link) {
      std::filesystem::create_symlink(folder / "moved", pending);
    } else {
      ASSERT_EQ(mkfifo(pending.c_str(), 0666), 0);
    }
    EXPECT_THAT(message_of([&] { file.finish_as(path); }),
                HasSubstr("was removed or replaced while it was written"));
    EXPECT_EQ(read_text_file(path), "old");
    std::filesystem::remove(pending);
  }
}

TEST(ReplaceFile, GivesNoNameToALinkOrAPipe) {
  const TempFolder folder;
  const std::filesystem::path path = folder / "weights", pending = pending_file(path);
  static_cast<void>(folder.write("weights", "old"));
  const auto other = folder.write("other", "precious");
  std::filesystem::create_symlink(other, pending);
  EXPECT_EQ(message_of([&] { replace_file(pending, path); }),
            "file '" + path.string() + "' cannot be replaced: '" + pending.string() +
                "', which was to take its name, is a link");
  std::filesystem::remove(pending);
  ASSERT_EQ(mkfifo(pending.c_str(), 0666), 0);
  EXPECT_THAT(message_of([&] { replace_file(pending, path); }), HasSubstr("is a pipe"));
  EXPECT_EQ(read_text_file(path), "old");
}

TEST(LinkFile, MakesNoSecondNameOfALink) {
  const TempFolder folder;
  const auto other = folder.write("other", "precious");
  std::filesystem::create_symlink(other, folder / "link");
  EXPECT_FALSE(link_file(folder / "link", folder / "second"));
  EXPECT_FALSE(std::filesystem::exists(folder / "second"));
}

}  // namespace
}  // namespace tandem
