// Image files written by tests, and damaged on purpose.
#pragma once

#include <gtest/gtest.h>
#include <turbojpeg.h>

#include <cstdint>
#include <filesystem>
#include <opencv2/core.hpp>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/temp_folder.h"

namespace tandem::test {

// A smooth picture: red grows to the right, green downwards, blue is the same everywhere.
inline cv::Mat gradient(int width, int height, int blue = 128) {
  cv::Mat image(height, width, CV_8UC3);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      image.at<cv::Vec3b>(y, x) =
          cv::Vec3b(static_cast<uchar>(blue), static_cast<uchar>(255 * y / height),
                    static_cast<uchar>(255 * x / width));
    }
  }
  return image;
}

// A picture with detail everywhere, so that its JPEG is long and every byte matters.
inline cv::Mat noise(int width, int height) {
  cv::Mat image(height, width, CV_8UC3);
  cv::RNG random(7);
  random.fill(image, cv::RNG::UNIFORM, 0, 256);
  return image;
}

inline std::string encoded(const std::string& extension, const cv::Mat& image) {
  std::vector<uchar> bytes;
  if (!cv::imencode(extension, image, bytes))
    throw std::runtime_error("cannot encode " + extension);
  return {bytes.begin(), bytes.end()};
}

inline std::string number_of(uint64_t value, size_t bytes, bool little = true) {
  std::string text;
  for (size_t i = 0; i < bytes; ++i) {
    text += static_cast<char>(value >> (8 * (little ? i : bytes - 1 - i)));
  }
  return text;
}

// EXIF data, a TIFF block, whose Orientation tag is `value`.
inline std::string exif_block(int value, bool little = true) {
  const auto number = [&](unsigned n, size_t bytes) { return number_of(n, bytes, little); };
  return std::string(little ? "II" : "MM") + number(42, 2) + number(8, 4) +
         number(2, 2) +  // two tags: ImageWidth, Orientation
         number(0x0100, 2) + number(3, 2) + number(1, 4) + number(9, 2) + number(0, 2) +
         number(0x0112, 2) + number(3, 2) + number(1, 4) + number(static_cast<unsigned>(value), 2) +
         number(0, 2) + number(0, 4);
}

// The JPEG with an EXIF block whose Orientation tag is `value`.
inline std::string with_orientation(const std::string& jpeg, int value, bool little = true) {
  const std::string block = std::string("Exif\0\0", 6) + exif_block(value, little);
  const size_t length = block.size() + 2;
  const std::string marker{'\xff', '\xe1', static_cast<char>(length >> 8),
                           static_cast<char>(length & 255)};
  return jpeg.substr(0, 2) + marker + block + jpeg.substr(2);
}

// The image as a lossless WebP in the extended form, with `exif` behind its pixels.
inline std::string webp_with_exif(const cv::Mat& image, const std::string& exif) {
  std::vector<uchar> plain;
  if (!cv::imencode(".webp", image, plain, {cv::IMWRITE_WEBP_QUALITY, 101}))
    throw std::runtime_error("cannot encode WebP");
  const auto chunk = [](const std::string& name, const std::string& body) {
    return name + number_of(body.size(), 4) + body + std::string(body.size() % 2, '\0');
  };
  constexpr unsigned has_exif = 0x08;
  const auto width = static_cast<unsigned>(image.cols), height = static_cast<unsigned>(image.rows);
  const std::string header =
      number_of(has_exif, 4) + number_of(width - 1, 3) + number_of(height - 1, 3);
  const std::string body = "WEBP" + chunk("VP8X", header) +
                           std::string(plain.begin() + 12, plain.end()) + chunk("EXIF", exif);
  return "RIFF" + number_of(body.size(), 4) + body;
}

// A tag of a TIFF: its values are bytes (type 1), or numbers of 16 (3) or 32 bits (4).
struct TiffTag {
  unsigned tag, type;
  std::vector<uint64_t> values;
};

// A TIFF with these tags and, from byte 8 on, these pixels.
inline std::string tiff_of(const std::vector<TiffTag>& tags, const std::string& pixels,
                           bool little = true) {
  const auto number = [&](uint64_t n, size_t bytes) { return number_of(n, bytes, little); };
  const size_t directory = 8 + pixels.size();
  const size_t behind = directory + 2 + 12 * tags.size() + 4;
  std::string entries = number(tags.size(), 2), elsewhere;
  for (const TiffTag& one : tags) {
    std::string values;
    for (const uint64_t value : one.values) {
      values += number(value, one.type == 1 ? 1 : one.type == 3 ? 2 : 4);
    }
    entries += number(one.tag, 2) + number(one.type, 2) + number(one.values.size(), 4);
    if (values.size() <= 4) {
      entries += values + std::string(4 - values.size(), '\0');
    } else {
      entries += number(behind + elsewhere.size(), 4);
      elsewhere += values;
    }
  }
  return (little ? "II" : "MM") + number(42, 2) + number(directory, 4) + pixels + entries +
         number(0, 4) + elsewhere;
}

// How the pixels of tiff_with_alpha() are stored.
struct TiffWithAlpha {
  bool little = true, planes = false, tile = false;
  unsigned mark_type = 3;  // of the tag that says what alpha is: 1, 3 or 4
  unsigned alpha = 2;      // the value of that tag: 2 is one that colors are not multiplied by
};

// An uncompressed TIFF of an image with 2 or 4 channels of 8 or 16 bits, the last of which is
// alpha. A tile has 16x16 pixels, and then the image has as many.
inline std::string tiff_with_alpha(const cv::Mat& image, const TiffWithAlpha& form = {}) {
  const auto number = [&](uint64_t n, size_t bytes) { return number_of(n, bytes, form.little); };
  const int channels = image.channels();
  const bool is_gray = channels == 2;
  const size_t bytes = image.elemSize1();
  const auto sample = [&](int y, int x, int c) {
    const int stored = is_gray || c == 3 ? c : 2 - c;  // B,G,R,A
    const int at = x * channels + stored;
    return number(bytes == 1 ? image.ptr<uchar>(y)[at] : image.ptr<ushort>(y)[at], bytes);
  };
  std::string pixels;
  for (int plane = 0; plane < (form.planes ? channels : 1); ++plane) {
    for (int y = 0; y < image.rows; ++y) {
      for (int x = 0; x < image.cols; ++x) {
        for (int c = 0; c < (form.planes ? 1 : channels); ++c) pixels += sample(y, x, plane + c);
      }
    }
  }
  const uint64_t bits = 8 * bytes, area = image.total() * bytes;
  const size_t parts = form.planes ? static_cast<size_t>(channels) : 1;
  std::vector<uint64_t> begins(parts, 8), lengths(parts, pixels.size() / parts);
  for (size_t i = 0; i < parts; ++i) begins[i] += i * area;
  std::vector<TiffTag> tags{{0x100, 4, {static_cast<uint64_t>(image.cols)}},
                            {0x101, 4, {static_cast<uint64_t>(image.rows)}},
                            {0x102, 3, std::vector<uint64_t>(static_cast<size_t>(channels), bits)},
                            {0x103, 3, {1}},
                            {0x106, 3, {is_gray ? 1U : 2U}}};
  if (!form.tile) tags.push_back({0x111, 4, begins});
  tags.push_back({0x115, 3, {static_cast<uint64_t>(channels)}});
  if (!form.tile) tags.push_back({0x116, 4, {static_cast<uint64_t>(image.rows)}});
  if (!form.tile) tags.push_back({0x117, 4, lengths});
  tags.push_back({0x11c, 3, {form.planes ? 2U : 1U}});
  if (form.tile) {
    tags.push_back({0x142, 3, {16}});
    tags.push_back({0x143, 3, {16}});
    tags.push_back({0x144, 4, begins});
    tags.push_back({0x145, 4, lengths});
  }
  tags.push_back({0x152, form.mark_type, {form.alpha}});
  return tiff_of(tags, pixels, form.little);
}

// A JPEG in four inks; `image` in the inverted C, M, Y, K that such files hold.
inline std::string cmyk_jpeg(const cv::Mat& image) {
  tjhandle handle = tjInitCompress();
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  const int status = tjCompress2(handle, image.data, image.cols, static_cast<int>(image.step),
                                 image.rows, TJPF_CMYK, &bytes, &size, TJSAMP_444, 95, 0);
  std::string result(reinterpret_cast<char*>(bytes), size);
  tjFree(bytes);
  tjDestroy(handle);
  if (status != 0) throw std::runtime_error("cannot encode CMYK");
  return result;
}

// `count` small JPEGs named 1.jpg, 2.jpg, ... in the folder.
inline void fill_class(const TempFolder& root, const std::string& folder, int count,
                       int blue = 128) {
  const std::string jpeg = encoded(".jpg", gradient(20, 16, blue));
  for (int i = 1; i <= count; ++i) {
    (void)root.write(folder + "/" + std::to_string(i) + ".jpg", jpeg);
  }
}

}  // namespace tandem::test
