// Pixels as bytes of the data sets of picture files.
#include "plugins/abi.h"
#ifdef TANDEM_TEST_IMAGES

#include <gmock/gmock.h>

#include "core/data/pack.h"
#include "tests/data/byte_samples.h"
#include "tests/data/image_data.h"

namespace tandem {
namespace {

using test::both_forms;
using test::expect_alike;
using test::half_a_step;
using test::open_images;
using test::Parameters;
using test::TempFolder;
using testing::HasSubstr;

class ImageBytes : public testing::Test {
 protected:
  ImageBytes() {
    for (const char* name : {"a", "b"}) {
      const std::string folder = std::string("images/") + name;
      (void)folder_.write(folder + "/1.jpg", test::encoded(".jpg", test::noise(90, 70)));
      (void)folder_.write(folder + "/2.png", test::encoded(".png", test::noise(24, 31)));
      (void)folder_.write(folder + "/3.jpg", test::encoded(".jpg", test::gradient(33, 20)));
    }
  }
  [[nodiscard]] DatasetOptions options(const Parameters& parameters) const {
    DatasetOptions options = test::image_options((folder_ / "images").string());
    options.shape = {1, 3, 19, 21};
    options.parameters = parameters;
    options.parameters["val_fraction"] = "0";
    return options;
  }
  TempFolder folder_;
};

TEST_F(ImageBytes, AreWithinHalfAStepOfTheFloatsForEveryTransform) {
  const Parameters kinds[] = {{},
                              {{"mirror", "true"}},
                              {{"resize", "23"}, {"pad", "3"}},
                              {{"crop_area", "0.2,1"}, {"mirror", "true"}},
                              {{"interpolation", "bicubic"}, {"pad", "3"}},
                              {{"rotation", "30"}},
                              {{"jitter", "0.4,0.4,0.4,0.1"}},
                              {{"randaugment", "2,9"}},
                              {{"erase", "0.5"}},
                              {{"cache", "4"}}};
  for (const Parameters& kind : kinds) {
    for (const char* color : {"bgr", "rgb"}) {
      Parameters all = kind;
      all["color"] = color;
      all["mean"] = "104.2,117.3,123.4";
      all["scale"] = "0.0173";
      const std::string what = kind.empty() ? "plain" : kind.begin()->first;
      expect_alike(open_images(options(all)), half_a_step, what);
    }
  }
}

TEST_F(ImageBytes, AreGrayIfTheNetIs) {
  DatasetOptions gray = options({{"mean", "99.5"}, {"mirror", "true"}});
  gray.shape = {1, 1, 19, 21};
  expect_alike(open_images(gray), half_a_step, "gray");
}

TEST_F(ImageBytes, AreExactWhereNothingIsResampled) {
  DatasetOptions whole = options({{"mean", "104.2,117.3,123.4"}, {"mirror", "true"}});
  whole.source = (folder_ / "same").string();
  for (const char* name : {"a", "b"}) {
    (void)folder_.write(std::string("same/") + name + "/1.png",
                        test::encoded(".png", test::noise(21, 19)));
  }
  expect_alike(open_images(whole), 0, "of the net's size");
}

TEST_F(ImageBytes, OfAPackAndOfAListAreThoseOfTheFolder) {
  PackOptions packing;
  packing.source = (folder_ / "images").string();
  packing.file = (folder_ / "images.pack").string();
  packing.parameters = {{"val_fraction", "0.3"}};
  packing.shorter_side = 0;
  (void)pack(test::data_registry(), packing);
  DatasetOptions packed = options({});
  packed.source = packing.file;
  packed.parameters = {{"mean", "104.2,117.3,123.4"}};
  expect_alike(open_images(packed), half_a_step, "pack");

  (void)folder_.write("list.csv", "path,label\nimages/a/1.jpg,a\nimages/b/2.png,b\n");
  DatasetOptions listed = options({});
  listed.source = (folder_ / "list.csv").string();
  expect_alike(open_images(listed), half_a_step, "list");
}

// Alternating columns of a and a + 1, halved in size: every pixel except at the edges is between
// two bytes.
TEST_F(ImageBytes, BetweenTwoValuesAreTheEvenOne) {
  const auto halved = [&](int a) {
    cv::Mat image(32, 32, CV_8UC3);
    for (int y = 0; y < 32; ++y) {
      for (int x = 0; x < 32; ++x) image.at<cv::Vec3b>(y, x) = cv::Vec3b::all(uchar(a + x % 2));
    }
    DatasetOptions wanted = options({});
    const TempFolder folder;
    wanted.source = folder.string();
    for (const char* name : {"a/1.png", "b/1.png"}) {
      (void)folder.write(name, test::encoded(".png", image));
    }
    wanted.shape = {1, 3, 16, 16};
    return both_forms(open_images(wanted), 0, 1);
  };
  for (const auto& [a, even] : {std::pair{0, 0}, {1, 2}, {2, 2}, {253, 254}, {254, 254}}) {
    const test::BothForms both = halved(a);
    EXPECT_EQ(both.floats[5 * 16 + 8], static_cast<float>(a) + 0.5F);
    EXPECT_EQ(both.bytes[5 * 16 + 8], even) << a;
  }
}

TEST_F(ImageBytes, OfADamagedFileAreNearlyZeroWithTheReason) {
  const std::string jpeg = test::encoded(".jpg", test::noise(90, 70));
  (void)folder_.write("images/a/1.jpg", jpeg.substr(0, jpeg.size() / 2));
  const test::BothForms both = both_forms(open_images(options({{"mean", "10.2,20.7,300"}})), 0, 1);
  EXPECT_EQ(both.byte_status, SampleStatus::skipped);
  EXPECT_EQ(both.byte_label, -1);
  EXPECT_THAT(both.byte_reason, HasSubstr("truncated or damaged JPEG"));
  EXPECT_EQ(both.bytes[0], 10);
  EXPECT_EQ(both.bytes[19 * 21], 21);
  EXPECT_EQ(both.bytes[2 * 19 * 21], 255);
}

}  // namespace
}  // namespace tandem
#endif
