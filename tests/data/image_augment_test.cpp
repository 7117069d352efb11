// Crops, mirroring and the parameters of the data set image_folder.
#include "plugins/abi.h"
#ifdef TANDEM_TEST_IMAGES

#include <gmock/gmock.h>

#include <set>

#include "tests/data/image_data.h"

namespace tandem {
namespace {

using test::get;
using test::image_options;
using test::open_images;
using test::TempFolder;
using test::training;
using testing::AllOf;
using testing::HasSubstr;

TEST(ImageAugmentation, IsAFunctionOfIndexAndSeed) {
  const TempFolder folder;
  const Dataset data = training(folder, {{"mirror", "true"}, {"resize", "12"}});
  EXPECT_EQ(get(data, 0, 5).pixels, get(data, 0, 5).pixels);
  std::set<std::vector<float>> views;
  for (uint64_t seed = 0; seed < 60; ++seed) views.insert(get(data, 0, seed).pixels);
  EXPECT_GT(views.size(), 20U);
}

TEST(ImageAugmentation, MirrorsHalfOfTheSamples) {
  const TempFolder folder;
  const Dataset data = training(folder, {{"mirror", "true"}, {"resize", "8"}});
  int falling = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const std::vector<float> pixels = get(data, 0, seed).pixels;
    if (pixels[128] > pixels[135]) ++falling;  // red grows to the right, unless mirrored
  }
  EXPECT_GT(falling, 70);
  EXPECT_LT(falling, 130);
}

TEST(ImageAugmentation, RandomCropsReachBothEdges) {
  const TempFolder folder;
  const Dataset data = training(folder, {{"resize", "16"}});  // 20x16, crops of 8x8
  float left = 255, right = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const std::vector<float> pixels = get(data, 0, seed).pixels;
    left = std::min(left, pixels[128]);
    right = std::max(right, pixels[135]);
  }
  EXPECT_LT(left, 10);
  EXPECT_GT(right, 230);
}

TEST(ImageAugmentation, DoesNotHappenInTesting) {
  const TempFolder folder;
  (void)training(folder, {});
  DatasetOptions options = image_options(folder.string(), "val");
  options.parameters = {{"mirror", "true"}, {"resize", "12"}};
  const Dataset data = open_images(options);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    EXPECT_EQ(get(data, 0, seed).pixels, get(data, 0, 99).pixels);
  }
}

TEST(ImageAugmentation, AnOpenSizeIsThatOfTheFirstImageOrOfResize) {
  const TempFolder folder;
  test::fill_class(folder, "a", 2);
  test::fill_class(folder, "b", 2);
  DatasetOptions options = image_options(folder.string());
  options.shape = {1, 0, 0, 0};
  EXPECT_TRUE(equal(open_images(options).shape(), {1, 3, 16, 20}));
  options.parameters["resize"] = "11";
  EXPECT_TRUE(equal(open_images(options).shape(), {1, 3, 11, 11}));
}

TEST(ImageAugmentation, ParametersThatDoNotFitAreRefused) {
  const TempFolder folder;
  EXPECT_THAT(test::message_of([&] {
                (void)training(folder, {{"resize", "7"}});
              }),
              AllOf(HasSubstr("resize 7 is below the crop of 8x8")));
  EXPECT_THAT(test::message_of([&] {
                (void)training(folder, {{"mean", "1,2"}});
              }),
              AllOf(HasSubstr("mean '1,2' has 2 values"), HasSubstr("3 channels")));
  EXPECT_THAT(test::message_of([&] {
                (void)training(folder, {{"mean", "1,x"}});
              }),
              HasSubstr("mean is '1,x'"));
  EXPECT_THAT(test::message_of([&] {
                (void)training(folder, {{"color", "rgba"}});
              }),
              HasSubstr("did you mean 'rgb'?"));
  DatasetOptions options = image_options(folder.string());
  options.shape.c = 4;
  EXPECT_THAT(test::refusal(options), HasSubstr("1 or 3 channels, but the net expects 4"));
}

// The first pass fills the memory, the second reads from it.
TEST(ImageCache, ChangesNoPixelWhateverFitsIntoIt) {
  const TempFolder folder;
  for (const char* name : {"a/1.jpg", "a/2.jpg", "b/1.jpg", "b/2.png"}) {
    (void)folder.write(
        name, test::encoded(std::filesystem::path(name).extension(), test::noise(700, 600)));
  }
  DatasetOptions options = test::image_options(folder.string());
  options.shape = {1, 3, 200, 200};
  options.parameters = {{"val_fraction", "0"}, {"crop_area", "0.2,1"}, {"mirror", "true"}};
  const Dataset plain = test::open_images(options);
  for (const char* mebibytes : {"1", "3", "100"}) {
    options.parameters["cache"] = mebibytes;
    const Dataset kept = test::open_images(options);
    for (uint64_t seed = 1; seed <= 6; ++seed) {
      for (int64_t i = 0; i < plain.size(); ++i) {
        ASSERT_EQ(test::get(kept, i, seed).pixels, test::get(plain, i, seed).pixels)
            << mebibytes << " MiB, image " << i << ", seed " << seed;
      }
    }
  }
}

TEST(ImageCache, ReturnsACachedPictureWithoutTheFile) {
  const TempFolder folder;
  test::fill_class(folder, "a", 2);
  test::fill_class(folder, "b", 2);
  DatasetOptions options = test::image_options(folder.string());
  options.parameters = {{"val_fraction", "0"}, {"cache", "1"}};
  const Dataset data = test::open_images(options);
  const test::Sample before = test::get(data);
  std::filesystem::remove(data.sample_name(0));
  EXPECT_EQ(test::get(data).pixels, before.pixels);
  EXPECT_EQ(test::get(data).label, before.label);
}

}  // namespace
}  // namespace tandem

#endif
