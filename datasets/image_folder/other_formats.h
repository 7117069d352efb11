// Decodes PNG, BMP, WebP, TIFF and PNM by OpenCV, after checks of their headers, and what
// more_formats.h has.
#pragma once

#include <opencv2/core.hpp>

#include "datasets/picture/bytes.h"

namespace tandem::image_folder {

using picture::Bytes;

// 8 bits, gray or B,G,R. Throws a Refusal (TANDEM_SKIP).
[[nodiscard]] cv::Mat decode_other(Bytes file, bool gray);

// Refusal (TANDEM_SKIP) for a picture without pixels or over 100 megapixels.
void check_extent(int64_t width, int64_t height);

}  // namespace tandem::image_folder
