// Databases, archives and tables of other programs as --data: called what they are.
#include "core/data/foreign_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/image_data.h"

namespace tandem {
namespace {

using test::image_options;
using test::refusal;
using test::TempFolder;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(ForeignData, FilesAreKnownByTheirBytesWhateverTheirNames) {
  struct Case {
    std::string bytes;
    const char* what;
  };
  const Case cases[] = {
      {"\x89HDF\r\n\x1a\n", "it is an HDF5 file, which is not read: "},
      {"PAR1", "it is a Parquet file"},
      {"ARROW1", "it is an Arrow file"},
      {std::string(16, '\0') + "\xde\xc0\xef\xbe", "LMDB database"},
      {std::string(257, 'x') + "ustar", "webdataset"},
      {"PK\x03\x04", "it is a zip archive, which is not read: unpack it"},
      {"\x1f\x8b", "it is a gzip archive"},
      {"SQLite format 3", "it is an SQLite database"},
      {"\x93NUMPY", "it is an array of NumPy"},
  };
  const TempFolder folder;
  for (const Case& one : cases) {
    const std::string file = folder.write("data.bin", one.bytes + std::string(600, '.')).string();
    EXPECT_THAT(refusal(image_options(file)), AllOf(HasSubstr("data.bin'"), HasSubstr(one.what),
                                                    Not(HasSubstr("class folder:"))));
  }
  EXPECT_THAT(refusal(image_options(folder.write("a.tfrecord", "x").string())),
              HasSubstr("it is a TFRecord file"));
  EXPECT_THAT(refusal(image_options(folder.write("data.yaml", "train: x").string())),
              HasSubstr("give the folder that it names"));
}

TEST(ForeignData, FoldersAreKnownByTheirFiles) {
  const TempFolder lmdb, shards, tables;
  (void)lmdb.write("train_lmdb/data.mdb", std::string(16, '\0') + "\xde\xc0\xef\xbe" + "....");
  (void)lmdb.write("train_lmdb/lock.mdb", "x");
  EXPECT_THAT(refusal(image_options(lmdb.path().string())),
              AllOf(HasSubstr("its 'data.mdb': it is the file of an LMDB database"),
                    HasSubstr("root=FOLDER")));
  for (const char* name : {"000.tar", "001.tar"}) {
    (void)shards.write(name, std::string(257, 'x') + "ustar" + std::string(300, 'x'));
  }
  EXPECT_THAT(refusal(image_options(shards.path().string())), HasSubstr("webdataset"));
  (void)tables.write("data/train-0.parquet", "PAR1....");
  (void)tables.write("README.md", "x");
  EXPECT_THAT(refusal(image_options(tables.path().string())), HasSubstr("Parquet"));
}

TEST(ForeignData, AFolderOfOtherFilesKeepsItsOwnMessage) {
  const TempFolder folder;
  (void)folder.write("a/1.txt", "x");
  (void)folder.write("b/2.txt", "x");
  (void)folder.write("old.zip", "PK\x03\x04");
  EXPECT_THAT(refusal(image_options(folder.path().string())), HasSubstr("holds no images"));
  EXPECT_EQ(foreign_data(folder.path().string()), "");
  EXPECT_EQ(foreign_data(folder.write("empty.bin", "").string()), "");
}

}  // namespace
}  // namespace tandem
