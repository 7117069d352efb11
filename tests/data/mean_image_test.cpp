// A mean for each pixel, beside what Caffe's DataTransformer computes.
#include "plugins/abi.h"
#ifdef TANDEM_TEST_IMAGES

#include <gmock/gmock.h>

#include <cmath>
#include <set>

#include "tests/data/image_data.h"
#include "tests/support/mean_image_file.h"

namespace tandem {
namespace {

using test::encoded;
using test::get;
using test::mean_image_file;
using test::Parameters;
using test::Sample;
using test::TempFolder;
using testing::HasSubstr;

constexpr int height = 12, width = 14, crop = 8;

// Planes of B,G,R that are nowhere alike.
std::vector<float> means() {
  std::vector<float> values;
  for (int c = 0; c < 3; ++c) {
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        values.push_back(static_cast<float>(90 + 10 * c + 1.5 * y + std::sin(x + y * c)));
      }
    }
  }
  return values;
}

// DataTransformer::Transform(Datum): the mean of a pixel is at the pixel's place in the whole
// picture, wherever the crop is, and a mirrored sample has the mirrored mean.
std::vector<float> by_caffe(const cv::Mat& picture, const std::vector<float>& mean, float scale,
                            int h_off, int w_off, bool is_mirrored) {
  std::vector<float> top(3 * crop * crop);
  for (int c = 0; c < 3; ++c) {
    for (int h = 0; h < crop; ++h) {
      for (int w = 0; w < crop; ++w) {
        const int data_index = (c * height + h_off + h) * width + w_off + w;
        const int top_index = (c * crop + h) * crop + (is_mirrored ? crop - 1 - w : w);
        const auto datum = static_cast<float>(picture.at<cv::Vec3b>(h_off + h, w_off + w)[c]);
        top[static_cast<size_t>(top_index)] =
            (datum - mean[static_cast<size_t>(data_index)]) * scale;
      }
    }
  }
  return top;
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i) most = std::max<double>(most, std::abs(a[i] - b[i]));
  return most;
}

class MeanImages : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"a/1.png", "a/2.png", "b/1.png", "b/2.png"}) {
      (void)folder_.write(name, encoded(".png", picture_));
    }
    mean_ = files_.write("mean.binaryproto", mean_image_file(3, height, width, means())).string();
  }
  DatasetOptions options(const Parameters& more, int32_t phase = TANDEM_TEST) const {
    DatasetOptions options = test::image_options(folder_.string());
    options.phase = phase;
    options.shape = {1, 3, crop, crop};
    options.parameters = {{"mean_image", mean_}, {"scale", "0.5"},
                          {"fit", "squash"},     {"resize", std::to_string(height)},
                          {"val_fraction", "0"}, {"resize_width", std::to_string(width)}};
    for (const auto& [name, value] : more) options.parameters[name] = value;
    return options;
  }
  Sample sample(const Parameters& more, int32_t phase = TANDEM_TEST, uint64_t seed = 1) const {
    Sample one = get(test::open_images(options(more, phase)), 0, seed);
    EXPECT_EQ(one.status, SampleStatus::good) << one.reason;
    return one;
  }

  cv::Mat picture_ = test::noise(width, height);
  TempFolder folder_, files_;
  std::string mean_;
};

TEST_F(MeanImages, AreTakenFromTheMiddleOfTestingPicturesAsInCaffe) {
  const auto caffe =
      by_caffe(picture_, means(), 0.5F, (height - crop) / 2, (width - crop) / 2, false);
  EXPECT_LE(largest_difference(sample({}).pixels, caffe), 1e-4);
}

TEST_F(MeanImages, AreTakenFromRandomPartsAsInCaffe) {
  std::set<int> places;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    const Sample one = sample({{"mirror", "true"}}, TANDEM_TRAIN, seed);
    int found = -1, place = 0;
    for (int h_off = 0; h_off <= height - crop; ++h_off) {
      for (int w_off = 0; w_off <= width - crop; ++w_off) {
        for (const bool is_mirrored : {false, true}) {
          ++place;
          const auto caffe = by_caffe(picture_, means(), 0.5F, h_off, w_off, is_mirrored);
          if (largest_difference(one.pixels, caffe) <= 1e-4) found = place;
        }
      }
    }
    EXPECT_GT(found, 0) << "no crop of Caffe's is like that of seed " << seed;
    places.insert(found);
  }
  EXPECT_GT(places.size(), 10U);
}

TEST_F(MeanImages, AreInTheOrderOfTheNetsChannels) {
  const std::vector<float> bgr = sample({}).pixels, rgb = sample({{"color", "rgb"}}).pixels;
  const auto plane = static_cast<std::ptrdiff_t>(crop * crop);
  for (int c = 0; c < 3; ++c) {
    EXPECT_TRUE(std::equal(bgr.begin() + c * plane, bgr.begin() + (c + 1) * plane,
                           rgb.begin() + (2 - c) * plane))
        << c;
  }
}

TEST_F(MeanImages, OfAnotherSizeAreStretchedToThePicture) {
  std::vector<float> halves;
  for (const float value : means()) halves.insert(halves.end(), {value, value});
  const std::string wide =
      files_.write("wide.binaryproto", mean_image_file(3, height, 2 * width, halves)).string();
  EXPECT_LE(largest_difference(sample({}).pixels, sample({{"mean_image", wide}}).pixels), 1e-3);
}

TEST_F(MeanImages, ChangeOnlyWhatIsThereOfRecoloredAndTurnedPictures) {
  const std::string flat =
      files_
          .write("flat.binaryproto", mean_image_file(3, 2, 2, {9, 9, 9, 9, 8, 8, 8, 8, 7, 7, 7, 7}))
          .string();
  for (const Parameters& more : std::vector<Parameters>{{{"jitter", "0.4,0.4,0.4,0.1"}},
                                                        {{"rotation", "30"}},
                                                        {{"pad", "4"}},
                                                        {{"erase", "1"}},
                                                        {{"randaugment", "2,9"}}}) {
    Parameters by_channel = more;
    by_channel["mean"] = "9,8,7";
    DatasetOptions plain = options(by_channel, TANDEM_TRAIN);
    plain.parameters.erase("mean_image");
    by_channel["mean_image"] = flat;
    for (uint64_t seed = 1; seed < 5; ++seed) {
      EXPECT_LE(largest_difference(get(test::open_images(plain), 0, seed).pixels,
                                   sample(by_channel, TANDEM_TRAIN, seed).pixels),
                1e-4)
          << more.begin()->first << " " << seed;
    }
  }
}

TEST_F(MeanImages, AreNotOfBytes) {
  const Dataset data = test::open_images(options({}));
  EXPECT_FALSE(data.has_bytes());
  EXPECT_THAT(data.why_no_bytes(), HasSubstr("mean_image has a mean for each pixel"));
}

TEST_F(MeanImages, ThatAreNoneAreRefused) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "is an array of 0x0x0 with 0 values"},
      {"no mean at all", "damaged, or no .binaryproto"},
      {mean_image_file(3, height, width, {1, 2, 3}), "3x12x14 with 3 values"},
      {mean_image_file(2, 1, 1, {1, 2}), "has 1 channel, or the 3 of the net"},
      {mean_image_file(1, 1, 2, {1, NAN}), "values that are not finite"},
      {mean_image_file(3, height, width, means()).substr(0, 90), "truncated"}};
  for (const auto& [bytes, reason] : cases) {
    const std::string file = files_.write("bad.binaryproto", bytes).string();
    EXPECT_THAT(test::refusal(options({{"mean_image", file}})),
                testing::AllOf(HasSubstr("mean_image '" + file), HasSubstr(reason)));
  }
  EXPECT_THAT(test::refusal(options({{"mean_image", files_.string() + "/none"}})),
              HasSubstr("cannot be read"));
}

}  // namespace
}  // namespace tandem

#endif
