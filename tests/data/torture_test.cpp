// The torture folder: every file has its verdict and its pixels, nothing is printed, nothing is
// changed.
#include "plugins/abi.h"
#ifdef TANDEM_TEST_IMAGES

#include <gmock/gmock.h>

#include <map>

#include "tests/data/image_data.h"
#include "tests/data/torture_folder.h"
#include "tests/support/folders.h"

namespace tandem {
namespace {

using test::contents_of;
using test::get;
using test::make_torture;
using test::Sample;
using test::TempFolder;
using test::TortureCase;
using testing::HasSubstr;
using testing::IsEmpty;

DatasetOptions torture_options(const TempFolder& folder) {
  DatasetOptions options = test::image_options(folder.string());
  options.parameters["val_fraction"] = "0";
  options.shape = {1, 3, 24, 36};
  return options;
}

double mean_difference(const Sample& sample, const std::string& reference) {
  const cv::Mat image =
      cv::imread((test::source_folder() / "tests/reference/images/").string() + reference);
  double sum = 0;
  const size_t plane = sample.pixels.size() / 3;
  for (size_t i = 0; i < plane; ++i) {
    const auto* pixel = image.data + 3 * i;
    for (size_t c = 0; c < 3; ++c) {
      sum += std::abs(static_cast<double>(sample.pixels[c * plane + i]) - pixel[c]);
    }
  }
  return sum / static_cast<double>(3 * plane);
}

TEST(TortureFolder, EveryFileHasItsVerdictAndItsPixels) {
  const TempFolder folder;
  const std::vector<TortureCase> cases = make_torture(folder, "a");
  test::fill_class(folder, "b", 2);
  EXPECT_GE(cases.size(), 90U);
  const auto before = contents_of(folder.path());
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  const Dataset data = test::open_images(torture_options(folder));
  std::map<std::string, int64_t> index;
  for (int64_t i = 0; i < data.size(); ++i) {
    const std::string name = data.sample_name(i);
    if (name.starts_with((folder / "a/").string())) {
      index[name.substr((folder / "a/").string().size())] = i;
    }
  }
  // A picture rotated by EXIF is upright.
  DatasetOptions upright = torture_options(folder);
  upright.shape = {1, 3, 36, 24};
  const Dataset turned = test::open_images(upright);
  std::map<std::string, Sample> samples;
  for (const auto& [name, i] : index) {
    const bool on_its_side = name.starts_with("turned_") && name[7] >= '5' && name[7] <= '8';
    samples[name] = get(on_its_side ? turned : data, i);
  }
  const std::string errors = testing::internal::GetCapturedStderr();
  const std::string output = testing::internal::GetCapturedStdout();
  EXPECT_THAT(errors, IsEmpty());
  EXPECT_THAT(output, IsEmpty());
  EXPECT_EQ(contents_of(folder.path()), before);
  for (const TortureCase& one : cases) {
    ASSERT_EQ(index.count(one.name), 1U) << one.name;
    const Sample& sample = samples[one.name];
    if (!one.reason.empty()) {
      EXPECT_EQ(sample.status, SampleStatus::skipped) << one.name;
      EXPECT_THAT(sample.reason, HasSubstr(one.reason)) << one.name;
      continue;
    }
    EXPECT_EQ(sample.status, SampleStatus::good) << one.name << ": " << sample.reason;
    if (one.expected.empty() || sample.status != SampleStatus::good) continue;
    EXPECT_LE(mean_difference(sample, one.expected), one.tolerance) << one.name;
  }
  EXPECT_EQ(index.size(), cases.size());
  EXPECT_THAT(data.notes(), HasSubstr("broken link"));
}

TEST(TortureFolder, SixteenBitPicturesAreNeitherBlackNorWhite) {
  const TempFolder folder;
  (void)make_torture(folder, "a");
  test::fill_class(folder, "b", 2);
  const Dataset data = test::open_images(torture_options(folder));
  for (int64_t i = 0; i < data.size(); ++i) {
    const std::string name = std::filesystem::path(data.sample_name(i)).filename().string();
    if (name != "color16.png" && name != "color16.tiff") continue;
    const Sample sample = get(data, i);
    EXPECT_NEAR(sample.pixels[0], 128, 1) << name;
    EXPECT_NEAR(sample.pixels[2 * 24 * 36 + 35], 255.0 * 35 / 36, 1) << name;
  }
}

TEST(TortureFolder, FilesThatVanishOrChangeWhileTheyAreReadAreLeftOut) {
  const TempFolder folder;
  test::fill_class(folder, "a", 6);
  test::fill_class(folder, "b", 2);
  DatasetOptions options = test::image_options(folder.string());
  options.parameters["val_fraction"] = "0";
  const Dataset data = test::open_images(options);
  std::filesystem::remove(data.sample_name(0));
  std::filesystem::resize_file(data.sample_name(1), 300);
  std::filesystem::resize_file(data.sample_name(2), 0);
  std::filesystem::remove(data.sample_name(3));
  std::filesystem::create_directory(data.sample_name(3));
  (void)folder.write("a/5.jpg", test::encoded(".png", test::gradient(9, 9)));
  EXPECT_THAT(get(data, 0).reason, HasSubstr("No such file"));
  EXPECT_THAT(get(data, 1).reason, HasSubstr("truncated or damaged JPEG"));
  EXPECT_THAT(get(data, 2).reason, HasSubstr("0 bytes"));
  EXPECT_THAT(get(data, 3).reason, HasSubstr("it is a folder"));
  EXPECT_EQ(get(data, 4).status, SampleStatus::good);  // another picture by now
}

TEST(TortureFolder, DamageIsFoundWhateverPartIsDecoded) {
  const TempFolder folder;
  const std::string jpeg = test::encoded(".jpg", test::noise(300, 400));
  for (const char* name : {"a/1.jpg", "b/1.jpg"}) {
    (void)folder.write(name, jpeg.substr(0, jpeg.size() - 40));
  }
  DatasetOptions options = test::image_options(folder.string());
  options.parameters = {{"val_fraction", "0"}, {"resize", "300"}};
  options.shape = {1, 3, 30, 30};
  const Dataset data = test::open_images(options);
  for (uint64_t seed = 0; seed < 40; ++seed) {
    EXPECT_EQ(get(data, 0, seed).status, SampleStatus::skipped) << seed;
  }
}

TEST(TortureFolder, AFolderNameInLatin1BecomesUtf8) {
  const TempFolder folder;
  test::fill_class(folder, "caf\xe9", 5);
  test::fill_class(folder, "th\xc3\xa9", 5);
  DatasetOptions options = test::image_options(folder.string());
  const Dataset data = test::open_images(options);
  EXPECT_THAT(data.class_names(), testing::ElementsAre("caf\xc3\xa9", "th\xc3\xa9"));
  EXPECT_EQ(get(data).status, SampleStatus::good);
  test::fill_class(folder, "caf\xc3\xa9", 5);
  EXPECT_THAT(test::refusal(options), HasSubstr("which differ in bytes alone"));
}

TEST(TortureFolder, BytesChangedAtRandomCostAFileWithoutOutput) {
  const std::filesystem::path references = test::source_folder() / "tests/reference/images";
  cv::RNG random(23);
  int left_out = 0;
  for (const auto& entry : std::filesystem::directory_iterator(references)) {
    const std::string name = entry.path().filename().string();
    if (!std::filesystem::exists(references / (name + ".ppm"))) continue;
    const std::string good = test::read_text(entry.path());
    testing::internal::CaptureStderr();
    for (int i = 0; i < 60; ++i) {
      std::string bytes = good;
      for (int k = random.uniform(1, 8); k > 0; --k) {
        // Lengths and sizes are at the front.
        const int reach = k % 2 == 0 ? std::min<int>(100, static_cast<int>(bytes.size()))
                                     : static_cast<int>(bytes.size());
        bytes[static_cast<size_t>(random.uniform(0, reach))] =
            static_cast<char>(random.uniform(0, 256));
      }
      const Sample sample = test::read(name, bytes);
      left_out += sample.status == SampleStatus::skipped ? 1 : 0;
      if (sample.status == SampleStatus::skipped) {
        EXPECT_FALSE(sample.reason.empty()) << name;
      }
    }
    const std::string output = testing::internal::GetCapturedStderr();
    // libde265 writes to the C library's stderr, which cannot be held back for one thread.
    if (!name.ends_with(".heic")) {
      EXPECT_THAT(output, IsEmpty()) << name;
    }
  }
  EXPECT_GT(left_out, 300);
}

TEST(TortureFolder, AColorProfileThatLibpngDislikesIsReadWithoutOutput) {
  std::string png = test::read_text(test::source_folder() / "tests/reference/images/color.png");
  const Sample plain = test::read("a.png", png);
  // A chunk of a name, a method, and no compressed profile, with its check sum, after the header.
  png.insert(33, std::string("\0\0\0\x06iCCPicc\0\0\0\x75\x5a\x5f\x55", 18));
  testing::internal::CaptureStderr();
  const Sample sample = test::read("a.png", png);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), IsEmpty());
  EXPECT_EQ(sample.status, SampleStatus::good) << sample.reason;
  EXPECT_EQ(sample.pixels, plain.pixels);
}

}  // namespace
}  // namespace tandem

#endif
