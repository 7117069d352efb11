// One file: its pixels as the net reads them, or the reason why it is left out.
#include "plugins/abi.h"
#ifdef TANDEM_TEST_IMAGES

#include <gmock/gmock.h>

#include <cmath>

#include "tests/data/image_data.h"

namespace tandem {
namespace {

using test::encoded;
using test::gradient;
using test::read;
using test::Sample;
using test::size_of;

// The picture as (C,H,W) floats, B first.
std::vector<float> plain(const cv::Mat& image) {
  std::vector<float> pixels;
  for (int c = 0; c < image.channels(); ++c) {
    for (int y = 0; y < image.rows; ++y) {
      for (int x = 0; x < image.cols; ++x) {
        pixels.push_back(image.ptr<uchar>(y)[x * image.channels() + c]);
      }
    }
  }
  return pixels;
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return INFINITY;
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, static_cast<double>(std::abs(a[i] - b[i])));
  }
  return largest;
}

TEST(ImageDecoding, APngOfTheNetsSizeArrivesUnchangedInBgr) {
  const Sample sample = read("a.png", encoded(".png", gradient(20, 16)));
  EXPECT_EQ(sample.status, SampleStatus::good) << sample.reason;
  EXPECT_EQ(sample.pixels, plain(gradient(20, 16)));
}

TEST(ImageDecoding, AJpegArrivesNearlyUnchanged) {
  const Sample sample = read("a.jpg", encoded(".jpg", gradient(20, 16)));
  EXPECT_LT(largest_difference(sample.pixels, plain(gradient(20, 16))), 25);
}

TEST(ImageDecoding, TheContentDecidesNotTheExtension) {
  EXPECT_EQ(read("a.jpg", encoded(".png", gradient(20, 16))).pixels, plain(gradient(20, 16)));
  EXPECT_EQ(read("a.png", encoded(".jpg", gradient(20, 16))).status, SampleStatus::good);
}

TEST(ImageDecoding, TheMeanIsSubtractedBeforeScaling) {
  DatasetOptions options = size_of(16, 20);
  options.parameters = {{"mean", "104,117,123"}, {"scale", "0.5"}};
  const Sample sample = read("a.png", encoded(".png", gradient(20, 16)), options);
  const std::vector<float> original = plain(gradient(20, 16));
  EXPECT_FLOAT_EQ(sample.pixels[0], (original[0] - 104) * 0.5F);
  EXPECT_FLOAT_EQ(sample.pixels[320 + 5], (original[320 + 5] - 117) * 0.5F);
  EXPECT_FLOAT_EQ(sample.pixels[640 + 7], (original[640 + 7] - 123) * 0.5F);
}

TEST(ImageDecoding, RgbReversesTheChannelsAndTheirMeans) {
  DatasetOptions options = size_of(16, 20);
  options.parameters = {{"mean", "1,2,3"}, {"color", "rgb"}};
  const Sample sample = read("a.png", encoded(".png", gradient(20, 16)), options);
  const std::vector<float> original = plain(gradient(20, 16));
  EXPECT_EQ(sample.pixels[7], original[640 + 7] - 3);
  EXPECT_EQ(sample.pixels[640], original[0] - 1);
}

TEST(ImageDecoding, AGrayNetReadsColourAndAColourNetReadsGray) {
  cv::Mat gray;
  cv::cvtColor(gradient(20, 16), gray, cv::COLOR_BGR2GRAY);
  const Sample to_gray = read("a.png", encoded(".png", gradient(20, 16)), size_of(16, 20, 1));
  EXPECT_LE(largest_difference(to_gray.pixels, plain(gray)), 1);
  const Sample jpeg = read("a.jpg", encoded(".jpg", gradient(20, 16)), size_of(16, 20, 1));
  EXPECT_LT(largest_difference(jpeg.pixels, plain(gray)), 12);
  const Sample to_colour = read("a.png", encoded(".png", gray));
  cv::Mat three;
  cv::cvtColor(gray, three, cv::COLOR_GRAY2BGR);
  EXPECT_EQ(to_colour.pixels, plain(three));
}

TEST(ImageDecoding, AlphaIsDropped) {
  cv::Mat with_alpha;
  cv::cvtColor(gradient(20, 16), with_alpha, cv::COLOR_BGR2BGRA);
  EXPECT_EQ(read("a.png", encoded(".png", with_alpha)).pixels, plain(gradient(20, 16)));
}

TEST(ImageDecoding, SixteenBitsAreScaledTo8) {
  cv::Mat deep;
  gradient(20, 16).convertTo(deep, CV_16U, 257);
  EXPECT_LE(
      largest_difference(read("a.png", encoded(".png", deep)).pixels, plain(gradient(20, 16))), 1);
}

TEST(ImageDecoding, TwelveBitsInSixteenAreNotNearlyBlack) {
  cv::Mat deep;
  gradient(20, 16).convertTo(deep, CV_16U, 4095.0 / 255);
  EXPECT_LE(
      largest_difference(read("a.png", encoded(".png", deep)).pixels, plain(gradient(20, 16))), 1);
}

TEST(ImageDecoding, EveryExifOrientationIsAppliedAsByOpenCV) {
  for (int orientation = 1; orientation <= 8; ++orientation) {
    for (const bool little : {true, false}) {
      const std::string jpeg =
          test::with_orientation(encoded(".jpg", gradient(20, 16)), orientation, little);
      const cv::Mat judge =
          cv::imdecode(std::vector<uchar>(jpeg.begin(), jpeg.end()), cv::IMREAD_COLOR);
      const Sample sample = read("a.jpg", jpeg, size_of(judge.rows, judge.cols));
      EXPECT_LE(largest_difference(sample.pixels, plain(judge)), 3) << orientation;
    }
  }
}

TEST(ImageDecoding, ASidewaysPhotoIsUpright) {
  cv::Mat stored;
  cv::rotate(gradient(20, 16), stored, cv::ROTATE_90_COUNTERCLOCKWISE);
  const Sample sample = read("a.jpg", test::with_orientation(encoded(".jpg", stored), 6));
  EXPECT_LT(largest_difference(sample.pixels, plain(gradient(20, 16))), 25);
}

TEST(ImageDecoding, FourInksBecomeThreeColours) {
  // Inverted inks: 255 is none. Nearly no cyan, much magenta and yellow: red.
  const cv::Mat red(16, 20, CV_8UC4, cv::Scalar(250, 10, 10, 255));
  const Sample sample = read("a.jpg", test::cmyk_jpeg(red));
  ASSERT_EQ(sample.status, SampleStatus::good) << sample.reason;
  EXPECT_LT(sample.pixels[0], 20);
  EXPECT_LT(sample.pixels[320], 20);
  EXPECT_GT(sample.pixels[640], 235);
}

TEST(ImageDecoding, ALargePictureIsShrunkToTheCentreCrop) {
  // 400x300 to a shorter side of 30: 40x30, of which the middle 20x20.
  DatasetOptions options = size_of(20, 20);
  options.parameters["resize"] = "30";
  for (const char* extension : {".jpg", ".png"}) {
    const Sample sample = read("a", encoded(extension, gradient(400, 300)), options);
    ASSERT_EQ(sample.status, SampleStatus::good) << sample.reason;
    // Red at the left edge of the crop is that of column 10 of 40, at the right that of 30.
    EXPECT_NEAR(sample.pixels[800], 255 * 10.5 / 40, 4) << extension;
    EXPECT_NEAR(sample.pixels[819], 255 * 29.5 / 40, 4) << extension;
    EXPECT_NEAR(sample.pixels[400], 255 * 5.5 / 30, 4) << extension;
  }
}

TEST(ImageDecoding, WithoutResizeTheLargestCentredRegionIsTaken) {
  const Sample sample = read("a.png", encoded(".png", gradient(300, 100)), size_of(20, 20));
  EXPECT_NEAR(sample.pixels[800], 255.0 * 102.5 / 300, 3);
  EXPECT_NEAR(sample.pixels[819], 255.0 * 197.5 / 300, 3);
  EXPECT_NEAR(sample.pixels[400], 255 * 2.5 / 100, 3);
}

TEST(ImageDecoding, TinyAndNarrowPicturesAreEnlarged) {
  for (const cv::Size size : {cv::Size(1, 1), cv::Size(300, 1), cv::Size(2, 500)}) {
    const Sample sample =
        read("a.png", encoded(".png", cv::Mat(size, CV_8UC3, cv::Scalar(1, 2, 3))));
    EXPECT_EQ(sample.status, SampleStatus::good) << sample.reason;
    EXPECT_EQ(sample.pixels[319], 1);
    EXPECT_EQ(sample.pixels[959], 3);
  }
}

}  // namespace
}  // namespace tandem

#endif
