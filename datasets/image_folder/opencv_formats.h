// Decodes PNG, BMP, WebP, TIFF and PNM by OpenCV, after checks of their headers, and what
// gif_heif_formats.h has.
#pragma once

#include <opencv2/core.hpp>

#include "datasets/image_folder/decoding_memory.h"

namespace tandem::image_folder {

// Gray or B,G,R, of as many bits as it has; upright, except a WebP, which exif_orientation() says
// how to turn. `remark` becomes what is wrong with the file though every pixel is there. Throws a
// Refusal (TANDEM_SKIP).
[[nodiscard]] cv::Mat decode_other(Bytes file, bool gray, const BeforePixels& before_pixels,
                                   const char*& remark);

// `image` in 8 bits: `white` becomes 255, as does what is above it. 0: 65535 of 16 bits, 1 of
// floats. A picture of 16 bits that was decoded to 8 (drops_lower_bits()) is refused
// (TANDEM_SKIP) where white is below 65535, as too few bits are left.
[[nodiscard]] cv::Mat to_8_bits(const cv::Mat& image, Bytes file, double white);

// The largest value of a picture of over 8 bits; 0 of others.
[[nodiscard]] double greatest_of(const cv::Mat& image);

}  // namespace tandem::image_folder
