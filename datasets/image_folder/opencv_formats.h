// Decodes PNG, BMP, WebP, TIFF and PNM by OpenCV, after checks of their headers, and what
// gif_heif_formats.h has.
#pragma once

#include <opencv2/core.hpp>

#include "datasets/image_folder/decoding_memory.h"

namespace tandem::image_folder {

// 8 bits, gray or B,G,R; upright, except a WebP, which exif_orientation() says how to turn. Throws
// a Refusal (TANDEM_SKIP).
[[nodiscard]] cv::Mat decode_other(Bytes file, bool gray, const BeforePixels& before_pixels);

}  // namespace tandem::image_folder
