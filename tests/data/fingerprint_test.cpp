// What is known of the files of a data set, where some of them are missing.
#include "core/data/fingerprint.h"
#ifdef TANDEM_TEST_IMAGES

#include <gmock/gmock.h>

#include "tests/data/image_data.h"
#include "tests/support/cifar_files.h"

namespace tandem {
namespace {

using test::open_images;
using test::TempFolder;
using testing::ElementsAre;

TEST(Fingerprint, CountsTheFilesThatAreThereIfTheFirstIsMissing) {
  const TempFolder folder;
  test::fill_class(folder, "a", 3);
  test::fill_class(folder, "b", 3);
  const auto bytes = static_cast<int64_t>(std::filesystem::file_size(folder / "b/1.jpg"));
  const Dataset data = open_images(folder);
  std::filesystem::remove(data.sample_name(0));
  const std::vector<FileState> files = file_states(data);
  ASSERT_GT(files.size(), 2U);
  EXPECT_EQ(files[0].bytes, -1);
  EXPECT_EQ(fingerprint_of(data, files).bytes, static_cast<int64_t>(files.size() - 1) * bytes);
}

TEST(Fingerprint, SamplesOfWhichNoneIsAFileHaveNoStates) {
  EXPECT_TRUE(file_states(test::scripted()).empty());
}

// What happened before it was made counts too.
TEST(DataWatch, ComparesWithTheStatesThatItIsGiven) {
  const TempFolder folder;
  test::fill_class(folder, "a", 3);
  test::fill_class(folder, "b", 3);
  const Dataset data = open_images(folder);
  std::vector<FileState> files = file_states(data);
  std::ofstream(data.sample_name(1)) << "another";
  DataWatch watch(folder.string(), {{&data, std::move(files)}, {nullptr, {}}});
  EXPECT_THAT(watch.news(true), ElementsAre(testing::StartsWith("1 of ")));
}

// Its samples are no files; the file beside it is none of theirs.
TEST(DataWatch, NoticesThatAFileOfManySamplesIsWritten) {
  const TempFolder folder;
  test::make_cifar(folder.path(), 20, 10);
  const std::string file = (folder / "data_batch_1.bin").string();
  DatasetOptions options;
  options.source = folder.string();
  options.phase = TANDEM_TRAIN;
  const Dataset data(test::data_registry(), options);
  DataWatch watch(folder.string(), {{&data, file_states(data)}, {nullptr, {}}});
  (void)folder.write("log.txt", "a line");
  EXPECT_THAT(watch.news(true), testing::IsEmpty());
  std::ofstream(file, std::ios::binary | std::ios::app) << '\0';
  EXPECT_THAT(watch.news(true),
              ElementsAre(testing::AllOf(testing::StartsWith("1 of "), testing::HasSubstr(file))));
  EXPECT_THAT(watch.news(true), testing::IsEmpty());
}

}  // namespace
}  // namespace tandem

#endif
