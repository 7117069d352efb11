#include <gmock/gmock.h>

#include "core/base/error.h"
#include "core/base/files/files.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"

namespace tandem {
namespace {

using test::message_of;
using test::TempFolder;
using testing::HasSubstr;

std::string refusal(const std::string& path) {
  return message_of([&] { make_folders(path); });
}

TEST(Folders, AreMadeWithThoseAboveThem) {
  const TempFolder folder;
  for (const char* path : {"a/b/c", "a/b//d/", "e/../f/."}) {
    EXPECT_EQ(refusal(folder.string() + "/" + path), "");
    EXPECT_TRUE(std::filesystem::is_directory(folder / path)) << path;
  }
}

TEST(Folders, OfAPathThatIsTooLongAreNotBegun) {
  for (const int names : {3000, 300000}) {
    const TempFolder folder;
    std::string path = folder.string() + "/";
    for (int i = 0; i < names; ++i) path += "a/";
    EXPECT_THAT(refusal(path), HasSubstr("File name too long"));
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  }
}

TEST(Folders, SayWhatIsInTheirWay) {
  const TempFolder folder;
  const std::string file = folder.write("file", "").string(), link = (folder / "link").string();
  std::filesystem::create_symlink("nowhere", link);
  EXPECT_EQ(refusal(file),
            "folder '" + file + "' cannot be made: '" + file + "' is there and is not a folder");
  EXPECT_THAT(refusal(file + "/a/b"), HasSubstr("'" + file + "' is there and is not a folder"));
  EXPECT_THAT(refusal(link + "/"), HasSubstr("'" + link +
                                             "' is there and is not a folder: it is a link to "
                                             "'nowhere', which is missing"));
}

TEST(FileName, LeadsNowhereElse) {
  EXPECT_EQ(as_file_name("AlexNet 2"), "AlexNet 2");
  EXPECT_EQ(as_file_name("../a/b"), "_._a_b");
  EXPECT_EQ(as_file_name("/etc"), "_etc");
  EXPECT_EQ(as_file_name(".."), "_.");
  EXPECT_EQ(as_file_name("a\nb\x7f"), "a_b_");
  EXPECT_EQ(as_file_name(""), "");
}

TEST(FileName, IsCutBetweenCharacters) {
  EXPECT_EQ(as_file_name(std::string(300, 'x')), std::string(100, 'x'));
  EXPECT_EQ(as_file_name(std::string(99, 'x') + "\xc3\xa9"), std::string(99, 'x'));
}

}  // namespace
}  // namespace tandem
