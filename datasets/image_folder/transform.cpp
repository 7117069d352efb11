#include "datasets/image_folder/transform.h"

#include <algorithm>
#include <cmath>
#include <opencv2/imgproc.hpp>

#include "plugins/random.h"

namespace tandem::image_folder {
namespace {

constexpr uint32_t augment_layer = 0x61756720;

// Where a region of `length` may begin within `whole`.
int place(int whole, int length, bool random, uint32_t bits) {
  const int room = whole - length;
  if (!random) return room / 2;
  return static_cast<int>(static_cast<uint64_t>(bits) * static_cast<uint64_t>(room + 1) >> 32);
}

// The part of the picture that becomes the crop: resizing first and cropping then would give the
// same pixels, but resizes those that are thrown away.
cv::Rect region_of(const cv::Mat& image, const TransformOptions& options,
                   const tandem_random4& draw) {
  const double columns = image.cols, rows = image.rows;
  const auto width = static_cast<double>(options.width);
  const auto height = static_cast<double>(options.height);
  const double scale = options.resize > 0
                           ? static_cast<double>(options.resize) / std::min(columns, rows)
                           : std::max(width / columns, height / rows);
  const int w = std::clamp(static_cast<int>(std::lround(width / scale)), 1, image.cols);
  const int h = std::clamp(static_cast<int>(std::lround(height / scale)), 1, image.rows);
  return {place(image.cols, w, options.random, draw.value[0]),
          place(image.rows, h, options.random, draw.value[1]), w, h};
}

void write_channel(const cv::Mat& image, int channel, bool mirrored, float mean, float scale,
                   float* pixels) {
  const int channels = image.channels();
  for (int y = 0; y < image.rows; ++y) {
    const unsigned char* row = image.ptr<unsigned char>(y) + channel;
    for (int x = 0; x < image.cols; ++x) {
      const int from = mirrored ? image.cols - 1 - x : x;
      *pixels++ = (static_cast<float>(row[from * channels]) - mean) * scale;
    }
  }
}

}  // namespace

void transform(const cv::Mat& image, const TransformOptions& options, uint64_t index, uint64_t seed,
               float* pixels) {
  const tandem_random4 draw = tandem_random_block(seed, 0, augment_layer, index, 0);
  const cv::Rect region = region_of(image, options, draw);
  const cv::Size size(static_cast<int>(options.width), static_cast<int>(options.height));
  cv::Mat cropped = image(region);
  if (region.size() != size) {
    const bool shrinks_much = region.width > 2 * size.width || region.height > 2 * size.height;
    cv::Mat resized;
    cv::resize(cropped, resized, size, 0, 0, shrinks_much ? cv::INTER_AREA : cv::INTER_LINEAR);
    cropped = resized;
  }
  const bool mirrored = options.mirror && (draw.value[2] & 1U) != 0;
  const int64_t plane = options.height * options.width;
  for (int64_t c = 0; c < options.channels; ++c) {
    const auto source = static_cast<int>(options.rgb ? options.channels - 1 - c : c);
    write_channel(cropped, source, mirrored, options.mean[static_cast<size_t>(source)],
                  options.scale, pixels + c * plane);
  }
}

int needed_shorter_side(const TransformOptions& options) {
  return static_cast<int>(std::max({options.resize, options.height, options.width}));
}

}  // namespace tandem::image_folder
