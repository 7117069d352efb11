// Decodes PNG, BMP, WebP, TIFF and PNM by OpenCV, after checks of their headers, and what
// more_formats.h has.
#pragma once

#include <cstdint>
#include <functional>
#include <opencv2/core.hpp>

#include "datasets/picture/bytes.h"

namespace tandem::image_folder {

using picture::Bytes;

// Called before a decoder takes memory for the pixels, with its bytes, and with width and height,
// which were checked.
using BeforePixels = std::function<void(double bytes, int64_t width, int64_t height)>;

// 8 bits, gray or B,G,R; upright, except a WebP, which exif_orientation() says how to turn. Throws
// a Refusal (TANDEM_SKIP).
[[nodiscard]] cv::Mat decode_other(Bytes file, bool gray, const BeforePixels& before_pixels);

// Refusal (TANDEM_SKIP) for a picture without pixels or over 100 megapixels.
void check_extent(int64_t width, int64_t height);

}  // namespace tandem::image_folder
