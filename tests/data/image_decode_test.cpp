// One file: its pixels as the net reads them, or the reason why it is left out.
#include "plugins/abi.h"
#ifdef TANDEM_TEST_IMAGES

#include <gmock/gmock.h>

#include <cmath>

#include "tests/data/image_data.h"
#include "tests/support/folders.h"

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

double max_difference(const std::vector<float>& a, const std::vector<float>& b) {
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
  EXPECT_LT(max_difference(sample.pixels, plain(gradient(20, 16))), 25);
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

TEST(ImageDecoding, AGrayNetReadsColorAndAColorNetReadsGray) {
  cv::Mat gray;
  cv::cvtColor(gradient(20, 16), gray, cv::COLOR_BGR2GRAY);
  const Sample to_gray = read("a.png", encoded(".png", gradient(20, 16)), size_of(16, 20, 1));
  EXPECT_LE(max_difference(to_gray.pixels, plain(gray)), 1);
  const Sample jpeg = read("a.jpg", encoded(".jpg", gradient(20, 16)), size_of(16, 20, 1));
  EXPECT_LT(max_difference(jpeg.pixels, plain(gray)), 12);
  const Sample to_color = read("a.png", encoded(".png", gray));
  cv::Mat three;
  cv::cvtColor(gray, three, cv::COLOR_GRAY2BGR);
  EXPECT_EQ(to_color.pixels, plain(three));
}

TEST(ImageDecoding, AlphaIsDropped) {
  cv::Mat with_alpha;
  cv::cvtColor(gradient(20, 16), with_alpha, cv::COLOR_BGR2BGRA);
  EXPECT_EQ(read("a.png", encoded(".png", with_alpha)).pixels, plain(gradient(20, 16)));
}

// Noise with every value of alpha.
cv::Mat transparent(int depth, int channels) {
  cv::Mat image(16, 16, CV_MAKETYPE(depth, channels));
  cv::RNG random(7);
  random.fill(image, cv::RNG::UNIFORM, 0, depth == CV_8U ? 256 : 65536);
  const int last = channels - 1;
  for (int i = 0; i < 256; ++i) {
    if (depth == CV_8U) {
      image.ptr<uchar>(i / 16)[i % 16 * channels + last] = static_cast<uchar>(i);
    } else {
      image.ptr<ushort>(i / 16)[i % 16 * channels + last] = static_cast<ushort>(257 * i);
    }
  }
  return image;
}

cv::Mat without_alpha(const cv::Mat& image) {
  cv::Mat result;
  if (image.channels() == 2) {
    cv::extractChannel(image, result, 0);
  } else {
    cv::cvtColor(image, result, cv::COLOR_BGRA2BGR);
  }
  return result;
}

TEST(ImageDecoding, ColorsOfATiffAreNotMultipliedByItsAlpha) {
  for (const int depth : {CV_8U, CV_16U}) {
    for (const int channels : {2, 4}) {
      const cv::Mat image = transparent(depth, channels);
      const std::string png = encoded(".png", without_alpha(image));
      for (const int64_t read_channels : {1, 3}) {
        const DatasetOptions options = size_of(16, 16, read_channels);
        const std::vector<float> right = read("a.png", png, options).pixels;
        for (const bool little : {true, false}) {
          const Sample sample =
              read("a.tif", test::tiff_with_alpha(image, {.little = little}), options);
          ASSERT_EQ(sample.status, SampleStatus::good) << sample.reason;
          EXPECT_LE(max_difference(sample.pixels, right), 1)
              << depth << ' ' << channels << ' ' << read_channels << ' ' << little;
        }
      }
    }
  }
}

TEST(ImageDecoding, ColorsOfATiffAreNotMultipliedByAlphaHoweverItIsStored) {
  const cv::Mat image = transparent(CV_8U, 4);
  const std::vector<float> right = plain(without_alpha(image));
  const test::TiffWithAlpha forms[] = {{.planes = true},
                                       {.tile = true},
                                       {.mark_type = 1},
                                       {.mark_type = 4},
                                       {.alpha = 999},
                                       {.little = false, .planes = true},
                                       {.little = false, .mark_type = 4},
                                       {.little = false, .mark_type = 1},
                                       {.alpha = 1},
                                       {.alpha = 0}};
  for (const test::TiffWithAlpha& form : forms) {
    const Sample sample = read("a.tif", test::tiff_with_alpha(image, form), size_of(16, 16));
    ASSERT_EQ(sample.status, SampleStatus::good) << sample.reason;
    EXPECT_EQ(sample.pixels, right) << form.planes << form.tile << form.mark_type << form.alpha;
  }
}

TEST(ImageDecoding, SixteenBitsAreScaledTo8) {
  cv::Mat deep;
  gradient(20, 16).convertTo(deep, CV_16U, 257);
  EXPECT_LE(max_difference(read("a.png", encoded(".png", deep)).pixels, plain(gradient(20, 16))),
            1);
}

TEST(ImageDecoding, ATiffOfLargeIntegersIsNotCalledDamaged) {
  std::string tiff = test::encoded(".tiff", cv::Mat(16, 20, CV_32FC1, cv::Scalar(0.5)));
  const std::string format_is_float("\x53\x01\x03\0\1\0\0\0\3", 9);
  const size_t at = tiff.find(format_is_float);
  ASSERT_NE(at, std::string::npos);
  EXPECT_EQ(test::read("a.tiff", tiff).status, SampleStatus::good);
  for (const char format : {'\1', '\2'}) {
    tiff[at + 8] = format;
    EXPECT_EQ(test::reason_of("a.tiff", tiff),
              "not an image that is read here: a TIFF of integers of over 16 bits; store it with "
              "16 bits, or as floats");
  }
}

TEST(ImageDecoding, TwelveBitsInSixteenAreNotNearlyBlack) {
  cv::Mat deep;
  gradient(20, 16).convertTo(deep, CV_16U, 4095.0 / 255);
  DatasetOptions options = size_of(16, 20);
  options.parameters["white"] = "4095";
  EXPECT_LE(
      max_difference(read("a.png", encoded(".png", deep), options).pixels, plain(gradient(20, 16))),
      1);
}

TEST(ImageDecoding, EveryExifOrientationIsAppliedAsByOpenCV) {
  for (int orientation = 1; orientation <= 8; ++orientation) {
    for (const bool little : {true, false}) {
      const std::string jpeg =
          test::with_orientation(encoded(".jpg", gradient(20, 16)), orientation, little);
      const cv::Mat judge =
          cv::imdecode(std::vector<uchar>(jpeg.begin(), jpeg.end()), cv::IMREAD_COLOR);
      const Sample sample = read("a.jpg", jpeg, size_of(judge.rows, judge.cols));
      EXPECT_LE(max_difference(sample.pixels, plain(judge)), 3) << orientation;
    }
  }
}

TEST(ImageDecoding, ASidewaysPhotoIsUpright) {
  cv::Mat stored;
  cv::rotate(gradient(20, 16), stored, cv::ROTATE_90_COUNTERCLOCKWISE);
  const Sample sample = read("a.jpg", test::with_orientation(encoded(".jpg", stored), 6));
  EXPECT_LT(max_difference(sample.pixels, plain(gradient(20, 16))), 25);
}

TEST(ImageDecoding, EveryExifOrientationOfAWebpIsThatOfAJpeg) {
  const cv::Mat picture = gradient(20, 16);
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const std::string jpeg = test::with_orientation(encoded(".jpg", picture), orientation);
    const bool lies = orientation >= 5;
    const DatasetOptions options = size_of(lies ? 20 : 16, lies ? 16 : 20);
    const std::vector<float> right = read("a.jpg", jpeg, options).pixels;
    for (const bool little : {true, false}) {
      for (const std::string& mark : {std::string(), std::string("Exif\0\0", 6)}) {
        const std::string exif = mark + test::exif_block(orientation, little);
        const Sample sample = read("a.webp", test::webp_with_exif(picture, exif), options);
        ASSERT_EQ(sample.status, SampleStatus::good) << sample.reason;
        EXPECT_LT(max_difference(sample.pixels, right), 25) << orientation;
      }
    }
  }
}

TEST(ImageDecoding, ASidewaysWebpIsDescribedAsItIsShown) {
  const test::TempFolder folder;
  DatasetOptions options = size_of(16, 20);
  options.source =
      folder.write("a.webp", test::webp_with_exif(gradient(16, 20), test::exif_block(6))).string();
  options.class_names = {"a", "b"};
  std::string reason;
  const auto stored = test::open_images(options).describe(0, &reason);
  ASSERT_TRUE(stored) << reason;
  EXPECT_EQ(stored->width, 20);
  EXPECT_EQ(stored->height, 16);
}

TEST(ImageDecoding, AWebpWhoseExifDataAreCutOrNonsenseIsNotTurned) {
  const cv::Mat picture = gradient(20, 16);
  std::string exif = test::exif_block(3);
  std::vector<std::string> bad{test::exif_block(77), std::string("Exif\0\0", 6), "II*", ""};
  for (size_t size = 0; size < 32; ++size) bad.push_back(exif.substr(0, size));
  bad.push_back(exif.replace(4, 4, "\xff\xff\xff\xff"));
  for (const std::string& one : bad) {
    EXPECT_EQ(read("a.webp", test::webp_with_exif(picture, one)).pixels, plain(picture));
  }
  std::string long_chunk = test::webp_with_exif(picture, test::exif_block(3));
  long_chunk.replace(long_chunk.rfind("EXIF") + 4, 4, "\xff\xff\xff\xff");
  EXPECT_EQ(read("a.webp", long_chunk).pixels, plain(picture));
}

TEST(ImageDecoding, AnAvifMayHaveItsHeaderBehindItsPixels) {
  const std::string avif =
      test::read_text(test::source_folder() / "tests/reference/images/color.avif");
  const size_t header = avif.find("meta") - 4, pixels = avif.find("mdat") - 4;
  ASSERT_LT(header, pixels);
  std::string meta = avif.substr(header, pixels - header);
  const size_t offset = meta.find(std::string("\0\0\1\x13", 4));  // of the pixels in the file
  ASSERT_NE(offset, std::string::npos);
  meta.replace(offset, 4, std::string("\0\0\0\x28", 4));
  const std::string free = std::string("\0\1\0\0free", 8) + std::string(65536 - 8, '\0');
  const test::TempFolder folder;
  DatasetOptions options = size_of(16, 20);
  options.source =
      folder.write("a.avif", avif.substr(0, header) + avif.substr(pixels) + free + meta).string();
  options.class_names = {"a", "b"};
  const Dataset data = test::open_images(options);
  std::string reason;
  const auto stored = data.describe(0, &reason);
  ASSERT_TRUE(stored) << reason;
  EXPECT_GT(stored->width, 0);
#ifdef TANDEM_TEST_HEIF
  EXPECT_EQ(test::get(data).pixels, read("a.avif", avif).pixels);
#endif
}

TEST(ImageDecoding, FourInksBecomeThreeColors) {
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

cv::Mat gray_pattern(int width, int height) {
  cv::Mat picture(height, width, CV_8UC1);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      picture.ptr<uchar>(y)[x] = static_cast<uchar>((x * 37 + y * 91 + x * y * 53) % 256);
    }
  }
  return picture;
}

// A gray picture of 37x23 by Resize(8) and CenterCrop(5 or 3) of torchvision 0.29 (mode F). It is
// resized to 12x8; the crop begins at 3.5, 1.5 or at 4.5, 2.5, which is 4, 2 both times.
TEST(ImageDecoding, TheMiddleIsThatOfTorchvision) {
  const std::string picture = encoded(".png", gray_pattern(37, 23));
  const auto middle = [&](int side) {
    DatasetOptions options = size_of(side, side, 1);
    options.parameters["resize"] = "8";
    return read("a.png", picture, options).pixels;
  };
  const std::vector<float> five{
      113.932F, 137.615F, 126.269F, 119.448F, 133.34F,  113.033F, 122.748F, 121.465F, 108.069F,
      126.511F, 127.352F, 152.607F, 139.824F, 125.747F, 116.272F, 114.391F, 128.044F, 150.356F,
      135.004F, 100.555F, 146.504F, 100.198F, 137.931F, 136.095F, 138.29F};
  const std::vector<float> three{113.932F, 137.615F, 126.269F, 113.033F, 122.748F,
                                 121.465F, 127.352F, 152.607F, 139.824F};
  EXPECT_LT(max_difference(middle(5), five), 1e-3);
  EXPECT_LT(max_difference(middle(3), three), 1e-3);
}

// A gray picture of 7x5 resized by Pillow 13 (mode F), with values kept from 0 to 255.
TEST(ImageDecoding, ResizingEqualsPillows) {
  struct Case {
    const char* interpolation;
    int width, height;
    std::vector<float> right;
  };
  const Case cases[] = {
      {"bilinear",
       4,
       3,
       {65.0544F, 75.4343F, 141.423F, 151.803F, 126.873F, 133.556F, 149.778F, 102.28F, 105.68F,
        116.909F, 84.1771F, 120.483F}},
      {"bicubic",
       4,
       3,
       {63.1852F, 72.1772F, 144.139F, 150.952F, 132.072F, 135.485F, 154.153F, 99.0398F, 105.635F,
        120.122F, 78.9634F, 125.052F}},
      {"bicubic", 10, 7, {0,        9.61674F, 40.1189F, 75.3144F, 100.074F, 122.625F, 147.385F,
                          182.58F,  213.082F, 230.054F, 40.015F,  93.8301F, 109.049F, 28.9564F,
                          74.1884F, 137.099F, 170.211F, 103.178F, 123.35F,  176.068F, 122.299F,
                          149.952F, 141.362F, 62.0237F, 77.3301F, 149.095F, 213.315F, 74.4636F,
                          47.687F,  84.7242F, 188.844F, 112.584F, 92.75F,   210.322F, 129.814F,
                          140.314F, 242.126F, 163.25F,  68.9108F, 9.15558F, 45.0671F, 122.625F,
                          192.972F, 179.503F, 121.555F, 78.9615F, 85.2572F, 196.643F, 189.356F,
                          131.478F, 38.4104F, 117.069F, 172.772F, 125.426F, 102.136F, 66.6053F,
                          42.3531F, 142.269F, 159.653F, 131.799F, 114.441F, 103.525F, 92.449F,
                          90.741F,  88.0199F, 85.8748F, 82.1154F, 67.9199F, 60.8706F, 59.763F}}};
  const std::string picture = encoded(".png", gray_pattern(7, 5));
  for (const Case& one : cases) {
    DatasetOptions options = size_of(one.height, one.width, 1);
    options.parameters["interpolation"] = one.interpolation;
    const Sample sample = read("a.png", picture, options);
    EXPECT_LT(max_difference(sample.pixels, one.right), 1e-3) << one.interpolation;
  }
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
