// Files of several pictures, and TIFFs of floats: read, or called what they are.
#include "plugins/abi.h"
#ifdef TANDEM_TEST_IMAGES

#include <gmock/gmock.h>

#include "tests/data/image_data.h"

namespace tandem {
namespace {

using test::encoded;
using test::TempFolder;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

std::vector<std::string> remarks_of(const std::string& name, const std::string& bytes) {
  const TempFolder folder;
  DatasetOptions options = test::size_of(8, 8);
  options.source = folder.write(name, bytes).string();
  options.class_names = {"a", "b"};
  std::string reason;
  const auto stored = test::open_images(options).describe(0, &reason);
  EXPECT_TRUE(stored.has_value()) << reason;
  return stored ? stored->remarks : std::vector<std::string>();
}

TEST(SeveralPictures, OfAFileAreSaidToBeOneOfSeveral) {
  const TempFolder folder;
  const std::vector<cv::Mat> pages{test::gradient(9, 9, 10), test::gradient(9, 9, 200)};
  cv::imwrite((folder / "pages.tif").string(), pages);
  const std::string pages_file = test::read_text(folder / "pages.tif");
  EXPECT_THAT(remarks_of("a.tif", pages_file), Contains("the first of several pictures is read"));
  EXPECT_NEAR(test::read("a.tif", pages_file).pixels[0], 10, 1e-3);
  EXPECT_THAT(remarks_of("b.tif", encoded(".tif", pages[0])), Not(Contains(HasSubstr("several"))));
  // A picture of 1x1 pixels and no color table, once or twice.
  const std::string head("GIF89a\x01\0\x01\0\0\0\0", 13);
  const std::string picture(",\0\0\0\0\x01\0\x01\0\x80\xff\xff\xff\0\0\0\x02\x02\x44\x01\0", 21);
  const std::string delay("!\xf9\x04\0\0\0\0\0", 8);
  EXPECT_THAT(remarks_of("a.gif", head + delay + picture + delay + picture + ";"),
              Contains("the first of several pictures is read"));
  EXPECT_THAT(remarks_of("b.gif", head + delay + picture + ";"),
              Not(Contains(HasSubstr("several"))));
}

TEST(SeveralPictures, OfAWebPAreNoDamage) {
  const std::string body = std::string("WEBPVP8X\x0a\0\0\0\x02\0\0\0\x08\0\0\x08\0\0", 22) +
                           std::string("ANIM\x06\0\0\0\0\0\0\0\0\0", 14) +
                           std::string("ANMF\x10\0\0\0", 8) + std::string(16, '\0');
  EXPECT_THAT(test::reason_of("a.webp", "RIFF" + test::number_of(body.size(), 4) + body),
              testing::AllOf(HasSubstr("not an image that is read here: an animated WebP"),
                             Not(HasSubstr("damaged"))));
}

TEST(SeveralPictures, TiffsOfFloatsAreReadInGrayAndInColors) {
  cv::Mat gray(9, 9, CV_32FC1, cv::Scalar(0.5)), colors(9, 9, CV_32FC3, cv::Scalar(0.5, 0.5, 0.5));
  for (const cv::Mat& image : {gray, colors}) {
    for (const int64_t channels : {1, 3}) {
      const test::Sample sample =
          test::read("a.tif", encoded(".tif", image), test::size_of(8, 8, channels));
      ASSERT_EQ(sample.status, SampleStatus::good) << sample.reason;
      // OpenCV writes colors with fewer digits.
      for (const float value : sample.pixels) EXPECT_NEAR(value, 128, 3);
    }
  }
}

}  // namespace
}  // namespace tandem

#endif
