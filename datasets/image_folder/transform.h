// From a decoded picture to what a net reads: a region of it, resized to the crop, perhaps
// mirrored, then (pixel - mean) * scale, as C,H,W floats. A pure function of its arguments.
#pragma once

#include <array>
#include <cstdint>
#include <opencv2/core.hpp>

namespace tandem::image_folder {

struct TransformOptions {
  int64_t channels = 3, height = 0, width = 0;
  int64_t resize = 0;  // the shorter side before cropping; 0: the largest region of the crop's form
  bool random = false;  // the region at random; else the centre
  bool mirror = false;  // half of the samples
  bool rgb = false;
  std::array<float, 3> mean{};  // of B, G, R; or of gray
  float scale = 1;
};

// `image` is 8 bits with as many channels as the net takes.
void transform(const cv::Mat& image, const TransformOptions& options, uint64_t index, uint64_t seed,
               float* pixels);

// How long the shorter side of a picture must be so that transform() never enlarges it.
[[nodiscard]] int needed_shorter_side(const TransformOptions& options);

}  // namespace tandem::image_folder
