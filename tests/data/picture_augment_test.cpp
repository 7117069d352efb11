// Every augmentation of the data sets of pictures: its effect on pixels, and that it is a function
// of index and seed.
#include "plugins/abi.h"
#ifdef TANDEM_TEST_IMAGES

#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "tests/data/image_data.h"

namespace tandem {
namespace {

using test::get;
using test::image_options;
using test::message_of;
using test::open_images;
using test::TempFolder;
using testing::HasSubstr;

constexpr size_t crop_plane = 64;  // of the 8x8 crop

// One picture of each class, drawn as `image`, read for training.
class Drawn {
 public:
  Drawn(const cv::Mat& image, const test::Parameters& parameters) {
    const std::string png = test::encoded(".png", image);
    for (const char* name : {"a/1.png", "b/1.png"}) (void)folder_.write(name, png);
    options_ = image_options(folder_.string());
    options_.parameters = parameters;
    options_.parameters["val_fraction"] = "0";
  }
  [[nodiscard]] Dataset open() const { return open_images(options_); }
  DatasetOptions options_;

 private:
  TempFolder folder_;
};

std::vector<float> sample(const Dataset& data, uint64_t seed) {
  return get(data, 0, seed).pixels;
}

cv::Mat flat(int size, int blue, int green, int red) {
  return {size, size, CV_8UC3, cv::Scalar(blue, green, red)};
}

TEST(PictureAugmentation, EveryKindIsAFunctionOfIndexAndSeed) {
  const test::Parameters kinds[] = {
      {{"pad", "2"}, {"resize", "8"}}, {{"crop_area", "0.2,1"}}, {{"rotation", "30"}},
      {{"jitter", "0.4,0.4,0.4,0.1"}}, {{"randaugment", "2,9"}}, {{"erase", "1"}},
      {{"trivialaugment", "1"}}};
  for (const test::Parameters& kind : kinds) {
    const Drawn drawn(test::noise(24, 20), kind);
    const Dataset data = drawn.open(), again = drawn.open();
    std::set<std::vector<float>> views;
    for (uint64_t seed = 0; seed < 40; ++seed) {
      views.insert(sample(data, seed));
      EXPECT_EQ(sample(data, seed), sample(again, seed)) << kind.begin()->first;
    }
    EXPECT_GT(views.size(), 10U) << kind.begin()->first;
    DatasetOptions testing = drawn.options_;
    testing.phase = TANDEM_TEST;
    const Dataset plain = open_images(testing);
    EXPECT_EQ(sample(plain, 1), sample(plain, 2)) << kind.begin()->first;
  }
}

TEST(PictureAugmentation, PaddingShiftsThePictureAndFillsWithTheMean) {
  const Drawn drawn(flat(8, 100, 150, 200), {{"pad", "3"}, {"mean", "7,8,9"}});
  const Dataset data = drawn.open();
  int shifted = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const std::vector<float> pixels = sample(data, seed);
    for (size_t i = 0; i < crop_plane; ++i) {
      EXPECT_TRUE(pixels[i] == 0 || pixels[i] == 93) << pixels[i];
      EXPECT_EQ(pixels[2 * crop_plane + i], pixels[i] == 0 ? 0 : 191);
    }
    const auto filled = std::count(pixels.begin(), pixels.begin() + crop_plane, 0.0F);
    EXPECT_LE(filled, 64 - 25);  // at most three columns and three rows
    shifted += filled > 0 ? 1 : 0;
  }
  EXPECT_GT(shifted, 45);  // 48 of the 49 places are not the middle
}

TEST(PictureAugmentation, ARandomResizedCropKeepsWithinItsLimits) {
  // Red grows to the right by 255 over 200 columns: the span of a crop is its width.
  const Drawn drawn(test::gradient(200, 200), {{"crop_area", "0.25,0.25"}, {"crop_ratio", "1,1"}});
  const Dataset data = drawn.open();
  float least = 255, most = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const std::vector<float> pixels = sample(data, seed);
    const float span = pixels[2 * crop_plane + 7] - pixels[2 * crop_plane];
    EXPECT_NEAR(span, 255.0 * 100 / 200 * 7 / 8, 3);
    least = std::min(least, pixels[2 * crop_plane]);
    most = std::max(most, pixels[2 * crop_plane + 7]);
  }
  EXPECT_LT(least, 20);
  EXPECT_GT(most, 235);
}

TEST(PictureAugmentation, RotationIsAboutTheCentre) {
  // A white cross on black, one pixel wide, stays bright in the centre.
  cv::Mat image = flat(65, 0, 0, 0);
  cv::line(image, {32, 0}, {32, 64}, cv::Scalar(255, 255, 255), 3);
  const Drawn drawn(image, {{"rotation", "90"}});
  DatasetOptions options = drawn.options_;
  options.shape = {1, 3, 65, 65};
  const Dataset data = open_images(options);
  std::set<bool> seen;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const std::vector<float> pixels = get(data, 0, seed).pixels;
    EXPECT_GT(pixels[32 * 65 + 32], 150);
    // The left of the centre is bright if the picture is rotated by about a quarter.
    seen.insert(pixels[32 * 65 + 5] > 150);
  }
  EXPECT_EQ(seen.size(), 2U);
}

TEST(PictureAugmentation, JitterStaysWithinItsFactors) {
  const Drawn drawn(flat(8, 100, 100, 100), {{"jitter", "0.3"}});
  const Dataset data = drawn.open();
  float least = 255, most = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const float value = sample(data, seed)[5];
    least = std::min(least, value);
    most = std::max(most, value);
  }
  EXPECT_NEAR(least, 70, 2);
  EXPECT_NEAR(most, 130, 2);
}

TEST(PictureAugmentation, HueChangesColorsAndKeepsGray) {
  const Drawn gray(flat(8, 90, 90, 90), {{"jitter", "0,0,0,0.5"}});
  const Drawn red(flat(8, 40, 40, 160), {{"jitter", "0,0,0,0.5"}});
  const Dataset gray_data = gray.open(), red_data = red.open();
  bool blue_wins = false;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const std::vector<float> pixels = sample(gray_data, seed);
    EXPECT_NEAR(pixels[0], 90, 0.5);
    EXPECT_NEAR(pixels[2 * crop_plane], 90, 0.5);
    const std::vector<float> color = sample(red_data, seed);
    blue_wins = blue_wins || color[0] > color[2 * crop_plane] + 20;
  }
  EXPECT_TRUE(blue_wins);
}

TEST(PictureAugmentation, ErasingSetsARectangleToTheMean) {
  const Drawn drawn(flat(8, 100, 100, 100), {{"erase", "0.5"}});
  const Dataset data = drawn.open();
  int erased = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const std::vector<float> pixels = sample(data, seed);
    const auto zeros = std::count(pixels.begin(), pixels.begin() + crop_plane, 0.0F);
    EXPECT_LE(zeros, 30);
    erased += zeros > 0 ? 1 : 0;
  }
  EXPECT_GT(erased, 70);
  EXPECT_LT(erased, 130);
}

TEST(PictureAugmentation, RandAugmentOfZeroStrengthChangesLittleAndStaysInRange) {
  const Drawn drawn(test::gradient(8, 8), {{"randaugment", "3,30"}});
  const Dataset data = drawn.open();
  for (uint64_t seed = 0; seed < 300; ++seed) {
    for (const float value : sample(data, seed)) {
      ASSERT_GE(value, 0);
      ASSERT_LE(value, 255.01);
    }
  }
}

// Without RandAugment the other half of the samples stays as it is.
TEST(PictureAugmentation, TrivialAugmentChangesItsShareOfTheSamples) {
  const Drawn plain(test::noise(8, 8), {}), half(test::noise(8, 8), {{"trivialaugment", "0.5"}}),
      all(test::noise(8, 8), {{"trivialaugment", "1"}});
  const Dataset before = plain.open(), of_half = half.open(), of_all = all.open();
  int changed = 0, changed_of_all = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    changed += sample(of_half, seed) != sample(before, seed) ? 1 : 0;
    changed_of_all += sample(of_all, seed) != sample(before, seed) ? 1 : 0;
  }
  EXPECT_GT(changed_of_all, 320);  // the identity is one of fourteen operations
  EXPECT_NEAR(changed, changed_of_all / 2, 40);
}

TEST(PictureAugmentation, ASampleOfStrongIsOfRandAugmentOrOfTrivialAugment) {
  const Drawn both(test::noise(8, 8), {{"randaugment", "2,9"}, {"trivialaugment", "0.5"}}),
      trivial(test::noise(8, 8), {{"trivialaugment", "0.5"}}), plain(test::noise(8, 8), {});
  const Dataset mixed = both.open(), one = trivial.open(), none = plain.open();
  int alike = 0, changed = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const bool is_changed = sample(one, seed) != sample(none, seed);
    changed += is_changed ? 1 : 0;
    alike += is_changed && sample(one, seed) == sample(mixed, seed) ? 1 : 0;
  }
  EXPECT_GT(changed, 60);
  EXPECT_EQ(alike, changed);
}

TEST(PictureAugmentation, OptionsThatDoNotFitAreRefused) {
  const auto refusal = [](const test::Parameters& parameters) {
    const Drawn drawn(flat(8, 1, 2, 3), parameters);
    return message_of([&] { (void)drawn.open(); });
  };
  EXPECT_THAT(refusal({{"crop_area", "0.5"}}), HasSubstr("crop_area must be two numbers"));
  EXPECT_THAT(refusal({{"crop_area", "0.5,2"}}), HasSubstr("crop_area must be"));
  EXPECT_THAT(refusal({{"crop_area", "0.5,1"}, {"pad", "4"}}), HasSubstr("exclude each other"));
  EXPECT_THAT(refusal({{"crop_ratio", "0,1"}}), HasSubstr("crop_ratio must be"));
  EXPECT_THAT(refusal({{"jitter", "0,0,0,0.6"}}), HasSubstr("jitter is 0.6 for hue"));
  EXPECT_THAT(refusal({{"jitter", "1,1,1,0.1,1"}}), HasSubstr("jitter has 5 numbers"));
  EXPECT_THAT(refusal({{"randaugment", "2"}}), HasSubstr("randaugment must be"));
  EXPECT_THAT(refusal({{"randaugment", "2,40"}}), HasSubstr("randaugment must be"));
  EXPECT_THAT(refusal({{"erase", "1.5"}}), HasSubstr("erase"));
  EXPECT_THAT(refusal({{"rotation", "-1"}}), HasSubstr("rotation"));
}

TEST(PictureDecoding, APartOfAJpegHasThePixelsOfTheWhole) {
  // The pixels of every part are those of the whole picture.
  const TempFolder folder;
  std::vector<uchar> progressive;
  cv::imencode(".jpg", test::noise(203, 151), progressive, {cv::IMWRITE_JPEG_PROGRESSIVE, 1});
  (void)folder.write("a/1.jpg", test::encoded(".jpg", test::noise(203, 151)));
  (void)folder.write("b/1.jpg", std::string(progressive.begin(), progressive.end()));
  DatasetOptions options = image_options(folder.string());
  options.parameters = {{"val_fraction", "0"}, {"resize", "151"}};
  options.shape = {1, 3, 40, 30};
  const Dataset parts = open_images(options);
  for (int64_t index = 0; index < 2; ++index) {
    const cv::Mat whole = cv::imread(parts.sample_name(index));
    for (uint64_t seed = 0; seed < 40; ++seed) {
      const std::vector<float> pixels = get(parts, index, seed).pixels;
      bool found = false;
      for (int y = 0; y <= 111 && !found; ++y) {
        for (int x = 0; x <= 173 && !found; ++x) {
          double most = 0;
          for (int k = 0; k < 1200 && most <= 3; ++k) {
            const auto& pixel = whole.at<cv::Vec3b>(y + k / 30, x + k % 30);
            for (int c = 0; c < 3; ++c) {
              most = std::max(most, std::abs(static_cast<double>(
                                        pixels[static_cast<size_t>(c * 1200 + k)] - pixel[c])));
            }
          }
          found = most <= 3;
        }
      }
      EXPECT_TRUE(found) << index << " " << seed;
    }
  }
}

}  // namespace
}  // namespace tandem

#endif
