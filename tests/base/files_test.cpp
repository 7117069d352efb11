#include "core/base/files.h"

#include <gmock/gmock.h>

#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"

namespace tandem {
namespace {

using test::message_of;
using test::TempFolder;
using testing::HasSubstr;

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

TEST(OutputFile, LeavesNothingWhereItCannotHaveItsName) {
  const TempFolder folder;
  const std::filesystem::path path = folder / "weights";
  std::filesystem::create_directories(path / "in the way");
  EXPECT_THAT(message_of([&] { write_as(path, "text"); }), HasSubstr("cannot be replaced"));
  EXPECT_FALSE(std::filesystem::exists(pending_file(path)));
}

}  // namespace
}  // namespace tandem
