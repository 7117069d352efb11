// Pictures of tests and predictions with resampling=pillow: bit for bit those of Pillow.
#include "plugins/abi.h"
#ifdef TANDEM_TEST_IMAGES

#include <gmock/gmock.h>

#include <algorithm>
#include <sstream>

#include "tests/data/image_data.h"
#include "tests/support/folders.h"

namespace tandem {
namespace {

using test::encoded;
using test::gradient;
using test::read;
using test::Sample;
using test::size_of;

struct Resized {
  int width = 0, height = 0, channels = 0, hard = 0;
  std::string filter;
  int side = 0, crop_width = 0, crop_height = 0;
  std::string bytes;  // two hexadecimal digits each
};

std::istream& operator>>(std::istream& in, Resized& one) {
  return in >> one.width >> one.height >> one.channels >> one.hard >> one.filter >> one.side >>
         one.crop_width >> one.crop_height >> one.bytes;
}

std::vector<Resized> by_pillow() {
  const auto file = test::source_folder() / "tests/reference/resized.txt";
  std::istringstream lines(test::read_text(file));
  std::vector<Resized> all;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    Resized one;
    if (line[0] != '#' && words >> one) all.push_back(one);
  }
  return all;
}

// The picture of tests/reference/make_resized.py, as PGM or PPM.
std::string pattern(const Resized& one) {
  std::string file = (one.channels == 3 ? "P6 " : "P5 ") + std::to_string(one.width) + " " +
                     std::to_string(one.height) + " 255\n";
  for (int y = 0; y < one.height; ++y) {
    for (int x = 0; x < one.width; ++x) {
      for (int c = 0; c < one.channels; ++c) {
        const int value = (x * 37 + y * 91 + x * y * 53 + c * (101 + 7 * x)) % 256;
        file += static_cast<char>(one.hard == 0 ? value : value > 127 ? 255 : 0);
      }
    }
  }
  return file;
}

DatasetOptions as_pillow(const DatasetOptions& size, int side, const std::string& filter) {
  DatasetOptions options = size;
  options.parameters = {{"resampling", "pillow"}, {"interpolation", filter}, {"color", "rgb"}};
  if (side > 0) options.parameters["resize"] = std::to_string(side);
  return options;
}

// (C,H,W) floats as interleaved hexadecimal digits.
std::string hexadecimal(const std::vector<float>& pixels, int channels) {
  const size_t plane = pixels.size() / static_cast<size_t>(channels);
  std::string text;
  for (size_t i = 0; i < plane; ++i) {
    for (size_t c = 0; c < static_cast<size_t>(channels); ++c) {
      const auto byte = static_cast<unsigned>(pixels[c * plane + i]);
      for (const unsigned digit : {byte >> 4, byte & 15}) text += "0123456789abcdef"[digit];
    }
  }
  return text;
}

TEST(ResizedPictures, AreThoseOfPillow) {
  const std::vector<Resized> all = by_pillow();
  EXPECT_GT(all.size(), 60u);
  for (const Resized& one : all) {
    const DatasetOptions size = size_of(one.crop_height, one.crop_width, one.channels);
    const Sample sample = read("a.ppm", pattern(one), as_pillow(size, one.side, one.filter));
    EXPECT_EQ(hexadecimal(sample.pixels, one.channels), one.bytes)
        << one.width << "x" << one.height << "x" << one.channels << " " << one.filter << " to "
        << one.side;
  }
}

TEST(ResizedPictures, AreMirroredWhereAsked) {
  DatasetOptions options = as_pillow(size_of(8, 12), 15, "bicubic");
  const std::string picture = encoded(".png", gradient(40, 30));
  const std::vector<float> plain = read("a.png", picture, options).pixels;
  options.parameters["mirror_view"] = "true";
  std::vector<float> mirrored = read("a.png", picture, options).pixels;
  EXPECT_NE(mirrored, plain);
  for (auto row = mirrored.begin(); row != mirrored.end(); row += 12) std::reverse(row, row + 12);
  EXPECT_EQ(mirrored, plain);
}

TEST(ResizedPictures, HaveTheirMeanTakenAwayAndAreScaledAfterwards) {
  DatasetOptions options = as_pillow(size_of(8, 8), 9, "bicubic");
  const std::string picture = encoded(".png", gradient(40, 30));
  const std::vector<float> bytes = read("a.png", picture, options).pixels;
  options.parameters["mean"] = "10,20,30";
  options.parameters["scale"] = "0.25";
  const std::vector<float> values = read("a.png", picture, options).pixels;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const float mean = i < 64 ? 30 : i < 128 ? 20 : 10;
    EXPECT_EQ(values[i], (bytes[i] - mean) * 0.25F) << i;
  }
}

// A decoder that shrinks a JPEG gives other pixels.
TEST(ResizedPictures, OfAJpegAreThoseOfTheWholePicture) {
  const std::string jpeg = encoded(".jpg", gradient(400, 300));
  const Sample whole = read("a.jpg", jpeg, size_of(300, 400));
  std::string ppm = "P6 400 300 255\n";
  for (size_t i = 0; i < 120000; ++i) {
    for (const size_t c : {2, 1, 0})
      ppm += static_cast<char>(static_cast<uint8_t>(whole.pixels[c * 120000 + i]));
  }
  for (const char* filter : {"bilinear", "bicubic"}) {
    const DatasetOptions options = as_pillow(size_of(21, 20), 30, filter);
    EXPECT_EQ(read("a.jpg", jpeg, options).pixels, read("a.ppm", ppm, options).pixels) << filter;
  }
}

TEST(ResizedPictures, AreTheSameFromMemory) {
  const test::TempFolder folder;
  DatasetOptions options = as_pillow(size_of(20, 20), 30, "bilinear");
  options.source = folder.write("a.jpg", encoded(".jpg", gradient(400, 300))).string();
  options.class_names = {"a", "b"};
  const std::vector<float> alone = test::get(test::open_images(options)).pixels;
  options.parameters["cache"] = "10";
  const Dataset cached = test::open_images(options);
  EXPECT_EQ(test::get(cached).pixels, alone);
  EXPECT_EQ(test::get(cached).pixels, alone);
}

TEST(ResizedPictures, OfTrainingAreThoseOfTheDefault) {
  const test::TempFolder folder;
  const auto pixels = [&](const char* resampling) {
    return test::get(test::training(folder, {{"resize", "12"}, {"resampling", resampling}})).pixels;
  };
  EXPECT_EQ(pixels("pillow"), pixels("direct"));
}

}  // namespace
}  // namespace tandem

#endif
