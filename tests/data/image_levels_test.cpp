// What is black and what is white in pictures with signed values and of floats.
#include "plugins/abi.h"
#ifdef TANDEM_TEST_IMAGES

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "tests/data/image_data.h"

namespace tandem {
namespace {

using test::encoded;
using test::get;
using test::open_images;
using test::Sample;
using test::size_of;
using test::TempFolder;
using testing::AllOf;
using testing::Each;
using testing::HasSubstr;

// 8x8 pixels of one value.
template <class Value>
std::string flat_tiff(double value) {
  const cv::Mat picture(8, 8, cv::DataType<Value>::type, cv::Scalar(value));
  if constexpr (!std::is_same_v<Value, short>) return encoded(".tiff", picture);
  std::string pixels;
  // Not from double at once: what is below 0 becomes 0 there on Arm.
  const auto bits = static_cast<uint64_t>(static_cast<int64_t>(value));
  for (int i = 0; i < 64; ++i) pixels += test::number_of(bits, 2);
  return test::tiff_of({{0x100, 4, {8}},
                        {0x101, 4, {8}},
                        {0x102, 3, {16}},
                        {0x103, 3, {1}},
                        {0x106, 3, {1}},
                        {0x111, 4, {8}},
                        {0x115, 3, {1}},
                        {0x116, 4, {8}},
                        {0x117, 4, {128}},
                        {0x153, 3, {2}}},
                       pixels);
}

template <class Value>
DatasetOptions classes_of(const TempFolder& folder, double a, double b) {
  for (const char* number : {"1", "2"}) {
    (void)folder.write(std::string("a/") + number + ".tif", flat_tiff<Value>(a));
    (void)folder.write(std::string("b/") + number + ".tif", flat_tiff<Value>(b));
  }
  DatasetOptions options = test::image_options(folder.string());
  options.parameters["val_fraction"] = "0";
  return options;
}

TEST(BlackOfImages, ValuesBelow0AreRefusedUntilSomethingSaysWhatIsBlack) {
  const TempFolder ct, ndvi;
  const DatasetOptions integers = classes_of<short>(ct, 300, -600),
                       floats = classes_of<float>(ndvi, 0.5, -0.25);
  EXPECT_THAT(test::refusal(integers),
              AllOf(HasSubstr("2 of 4 pictures"), HasSubstr("values below 0 (from -600 to -600)"),
                    HasSubstr("--data-option black=-600")));
  EXPECT_THAT(test::refusal(floats), HasSubstr("--data-option black=-0.25"));
}

TEST(BlackOfImages, WhatIsGivenIsBlackAndWhatIsBelowItIsCounted) {
  const TempFolder folder;
  DatasetOptions options = classes_of<short>(folder, 300, -600);
  options.parameters["black"] = "-1000";
  options.parameters["white"] = "1000";
  const Dataset data = open_images(options);
  EXPECT_THAT(get(data, 0).pixels, Each(std::round(255 * 1300.0 / 2000)));
  EXPECT_THAT(get(data, 2).pixels, Each(std::round(255 * 400.0 / 2000)));
  EXPECT_TRUE(data.remarks().empty());
  options.parameters["black"] = "-500";
  const Dataset cut = open_images(options);
  EXPECT_THAT(get(cut, 2).pixels, Each(0));
  ASSERT_EQ(cut.remarks().size(), 1U);
  EXPECT_THAT(cut.remarks()[0].text, HasSubstr("values below black"));
}

TEST(BlackOfImages, APredictedPictureWithValuesBelow0IsLeftOut) {
  const std::string reason = test::reason_of("a.tif", flat_tiff<short>(-5));
  EXPECT_THAT(reason, AllOf(HasSubstr("values below 0"), HasSubstr("black=-5")));
}

TEST(BlackOfImages, ValuesThatACodecLeavesSlightlyBelow0AreBlackAndCounted) {
  const TempFolder folder;
  DatasetOptions options = classes_of<float>(folder, 0.9, 0.5);
  cv::Mat picture(8, 8, CV_32F, cv::Scalar(0.9));
  picture.at<float>(0, 0) = -0.008F;
  (void)folder.write("a/1.tif", encoded(".tiff", picture));
  const Dataset data = open_images(options);
  EXPECT_EQ(get(data).pixels[0], 0);
  ASSERT_EQ(data.remarks().size(), 1U);
  EXPECT_THAT(data.remarks()[0].text, HasSubstr("values below black"));
  picture.at<float>(0, 0) = -0.01F;
  (void)folder.write("a/1.tif", encoded(".tiff", picture));
  EXPECT_THAT(test::refusal(options), HasSubstr("1 of 4 pictures that were looked at has values"));
}

TEST(BlackOfImages, IsBelowWhite) {
  const TempFolder folder;
  DatasetOptions options = classes_of<short>(folder, 300, 600);
  options.parameters["black"] = "100";
  options.parameters["white"] = "100";
  EXPECT_THAT(test::refusal(options), HasSubstr("white, 100, is not above black, 100"));
}

TEST(WhiteOfImages, Is0ForNoOne) {
  const TempFolder folder;
  DatasetOptions options = classes_of<short>(folder, 300, 600);
  options.parameters["white"] = "0";
  EXPECT_THAT(test::refusal(options), HasSubstr("white is '0'"));
}

TEST(ValuesOfImages, WhatIsNoNumberIsBlackAndCounted) {
  cv::Mat picture(8, 8, CV_32F, cv::Scalar(0.5));
  picture.at<float>(0, 0) = std::numeric_limits<float>::quiet_NaN();
  picture.at<float>(0, 1) = std::numeric_limits<float>::infinity();
  const TempFolder folder;
  for (const char* name : {"a/1.tiff", "b/1.tiff"}) {
    (void)folder.write(name, encoded(".tiff", picture));
  }
  DatasetOptions options = test::image_options(folder.string());
  options.parameters["val_fraction"] = "0";
  const Dataset data = open_images(options);
  EXPECT_EQ(data.chosen_parameters().at("white"), "1");
  const Sample sample = get(data);
  EXPECT_EQ(sample.pixels[0], 0);
  EXPECT_EQ(sample.pixels[1], 0);
  EXPECT_EQ(sample.pixels[2], 128);
  ASSERT_EQ(data.remarks().size(), 1U);
  EXPECT_THAT(data.remarks()[0].text, HasSubstr("no numbers (NaN) or infinite become black"));
  picture = cv::Scalar(std::numeric_limits<float>::quiet_NaN());
  EXPECT_THAT(test::reason_of("a.tiff", encoded(".tiff", picture)), HasSubstr("holds no numbers"));
}

}  // namespace
}  // namespace tandem
#endif
