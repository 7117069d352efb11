// How a picture of another form fits the net's input: cropped, squashed, or between bars.
#include "plugins/abi.h"
#ifdef TANDEM_TEST_IMAGES

#include <gmock/gmock.h>

#include <cmath>

#include "tests/data/image_data.h"

namespace tandem {
namespace {

using test::encoded;
using test::get;
using test::message_of;
using test::Parameters;
using test::read;
using test::Sample;
using test::size_of;
using test::TempFolder;
using testing::HasSubstr;

// Gray, from 0 at the left to 255 at the right.
cv::Mat ramp(int width, int height) {
  cv::Mat image(height, width, CV_8UC1);
  for (int x = 0; x < width; ++x) image.col(x).setTo(255 * x / (width - 1));
  return image;
}

Sample seen(const cv::Mat& image, int64_t height, int64_t width, const Parameters& parameters,
            const std::string& extension = ".png") {
  DatasetOptions options = size_of(height, width, image.channels());
  options.parameters = parameters;
  return read("a" + extension, encoded(extension, image), options);
}

// Row `y` of a gray sample.
std::vector<float> row(const Sample& sample, int64_t y, int64_t width) {
  const auto begin = sample.pixels.begin() + y * width;
  return {begin, begin + width};
}

TEST(Fits, ASquashedPictureIsSeenFromItsFirstToItsLastColumn) {
  for (const auto& [width, height] : {std::pair{128, 16}, {40, 64}, {16, 16}, {20, 90}}) {
    const Sample sample = seen(ramp(width, height), 16, 16, {{"fit", "squash"}});
    ASSERT_EQ(sample.status, SampleStatus::good) << sample.reason;
    for (const int64_t y : {0, 8, 15}) {
      const std::vector<float> found = row(sample, y, 16);
      for (int x = 0; x < 16; ++x) {
        EXPECT_NEAR(found[static_cast<size_t>(x)], 255 * (x + 0.5) / 16, 20) << width << " " << x;
      }
    }
  }
  // The middle alone shows half of it.
  const std::vector<float> cropped = row(seen(ramp(32, 16), 16, 16, {}), 8, 16);
  EXPECT_GT(cropped.front(), 55);
  EXPECT_LT(cropped.back(), 200);
}

TEST(Fits, ASquashedPictureMayBeLargerThanTheCrop) {
  // 32 columns of the ramp, of which the middle 16 are seen.
  const std::vector<float> found = row(
      seen(ramp(128, 20), 16, 16, {{"fit", "squash"}, {"resize", "24"}, {"resize_width", "32"}}), 8,
      16);
  for (int x = 0; x < 16; ++x) {
    EXPECT_NEAR(found[static_cast<size_t>(x)], 255 * (x + 8.5) / 32, 3) << x;
  }
}

struct Bars {
  int width, height;             // of the picture
  int left, top, right, bottom;  // of the input that it fills
};

class PaddedPicture : public testing::TestWithParam<Bars> {};

TEST_P(PaddedPicture, IsWholeBetweenBarsOfTheMean) {
  const Bars& c = GetParam();
  for (const char* resampling : {"direct", "pillow"}) {
    const Sample sample = seen(cv::Mat(c.height, c.width, CV_8UC1, cv::Scalar(200)), 16, 16,
                               {{"fit", "pad"}, {"mean", "100"}, {"resampling", resampling}});
    ASSERT_EQ(sample.status, SampleStatus::good) << sample.reason;
    for (int y = 0; y < 16; ++y) {
      for (int x = 0; x < 16; ++x) {
        const bool is_inside = x >= c.left && x < c.right && y >= c.top && y < c.bottom;
        EXPECT_NEAR(sample.pixels[static_cast<size_t>(16 * y + x)], is_inside ? 100 : 0, 1e-3)
            << x << " " << y << " " << resampling;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Fits, PaddedPicture,
                         testing::Values(Bars{32, 16, 0, 4, 16, 12}, Bars{16, 32, 4, 0, 12, 16},
                                         Bars{8, 4, 0, 4, 16, 12}, Bars{100, 3, 0, 7, 16, 8},
                                         Bars{50, 50, 0, 0, 16, 16}, Bars{48, 27, 0, 3, 16, 12}));

TEST(Fits, BytesHaveBarsOfTheNearestByte) {
  const TempFolder folder;
  DatasetOptions options = size_of(16, 16);
  options.source =
      folder.write("a.png", encoded(".png", cv::Mat(16, 32, CV_8UC3, cv::Scalar(7, 8, 9))))
          .string();
  options.class_names = {"a", "b"};
  options.parameters = {{"fit", "pad"}, {"mean", "104.4,117.6,123.2"}};
  const Dataset data = test::open_images(options);
  std::vector<uint8_t> bytes(3 * 16 * 16);
  float label = 0;
  std::string reason;
  ASSERT_EQ(data.get_bytes(0, 1, bytes.data(), &label, &reason), SampleStatus::good) << reason;
  EXPECT_EQ(bytes[0], 104);
  EXPECT_EQ(bytes[256], 118);
  EXPECT_EQ(bytes[512], 123);
  EXPECT_EQ(bytes[16 * 8], 7);
}

TEST(Fits, TrainingSeesTheWholePictureTooWhereNothingElseIsAsked) {
  const cv::Mat wide = ramp(64, 16);
  for (const char* fit : {"squash", "pad"}) {
    const TempFolder folder;
    for (const char* name : {"a/1.png", "b/1.png"}) {
      (void)folder.write(name, encoded(".png", wide));
    }
    DatasetOptions options = test::image_options(folder.string());
    options.shape = {1, 1, 16, 16};
    options.parameters = {{"fit", fit}, {"val_fraction", "0"}};
    const Dataset data = test::open_images(options);
    const Sample test = seen(wide, 16, 16, {{"fit", fit}});
    for (const uint64_t seed : {1, 2, 3}) {
      const Sample sample = get(data, 0, seed);
      for (int x = 0; x < 16; ++x) {
        const auto at = static_cast<size_t>(16 * 8 + x);
        EXPECT_NEAR(sample.pixels[at], test.pixels[at], 1) << fit << " " << x;
      }
    }
  }
}

TEST(Fits, OfALargeJpegAreThoseOfItsPixels) {
  const cv::Mat image = test::gradient(640, 200);
  for (const char* fit : {"squash", "pad"}) {
    const Sample jpeg = seen(image, 32, 32, {{"fit", fit}}, ".jpg");
    const Sample png = seen(image, 32, 32, {{"fit", fit}});
    for (size_t i = 0; i < png.pixels.size(); ++i) {
      ASSERT_NEAR(jpeg.pixels[i], png.pixels[i], 6) << fit << " " << i;
    }
  }
}

TEST(Fits, SizesThatDoNotFitEachOtherAreRefusedWithWhatWouldBeRight) {
  const auto refusal = [](const Parameters& parameters) {
    return message_of([&] { (void)seen(ramp(20, 16), 16, 16, parameters); });
  };
  EXPECT_THAT(refusal({{"fit", "stretch"}}), HasSubstr("crop, squash, pad"));
  EXPECT_THAT(refusal({{"resize_width", "20"}}), HasSubstr("is the width of fit=squash"));
  EXPECT_THAT(refusal({{"fit", "squash"}, {"resize", "20"}, {"resize_width", "12"}}),
              HasSubstr("resize_width 12 is below the crop of 16x16"));
  EXPECT_THAT(refusal({{"fit", "pad"}, {"resize", "12"}}),
              HasSubstr("resize 12 is below the crop of 16x16"));
}

}  // namespace
}  // namespace tandem

#endif
