// Decodes PNG, BMP, WebP, TIFF and PNM by OpenCV, after checks of their headers, and what
// gif_heif_formats.h has.
#pragma once

#include <algorithm>
#include <opencv2/core.hpp>
#include <optional>
#include <string>

#include "datasets/image_folder/decoding_memory.h"

namespace tandem::image_folder {

// Gray or B,G,R, of as many bits as it has; upright, except a WebP, which exif_orientation() says
// how to turn. `remark` becomes what is wrong with the file though every pixel is there. Throws a
// Refusal (TANDEM_SKIP).
[[nodiscard]] cv::Mat decode_other(Bytes file, bool gray, const BeforePixels& before_pixels,
                                   const char*& remark);

// The finite values of a picture of over 8 bits a channel.
struct Values {
  bool are_deep = false, are_floats = false;
  double least = 0, greatest = 0;
  int64_t finite = 0, others = 0;  // of all channels; others: NaN and infinite

  // Whether 0 is not black. A lossy codec and resampling leave values slightly below it.
  [[nodiscard]] bool go_below_0() const { return least < -0.01 * std::max(greatest, 0.0); }
};
[[nodiscard]] Values values_of(const cv::Mat& image);

// The values that become 0 and 255 in pictures of over 8 bits a channel.
struct Levels {
  double white = 0;             // 0: 65535 of 16 bits, 1 of floats
  std::optional<double> black;  // none: 0, and a picture for which go_below_0() holds is refused
};

// Why a picture with values below 0 is refused.
[[nodiscard]] std::string no_black(const Values& values);

// `image` in 8 bits by `levels`. What is above white becomes 255, what is below black 0, as does
// what is no number. A Refusal (TANDEM_SKIP) of a picture with values below 0 where nothing says
// what is black, of one without numbers, and of a picture of 16 bits that was decoded to 8
// (drops_lower_bits()) where white is below 65535 or black is not 0, as too few bits are left.
[[nodiscard]] cv::Mat to_8_bits(const cv::Mat& image, Bytes file, const Values& values,
                                const Levels& levels);

}  // namespace tandem::image_folder
