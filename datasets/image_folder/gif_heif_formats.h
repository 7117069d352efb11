// GIF (its first frame) by giflib, AVIF and HEIC by libheif. Each library is optional when Tandem
// is built; without it a file of the format is refused with its reason.
#pragma once

#include <opencv2/core.hpp>

#include "datasets/image_folder/decoding_memory.h"

namespace tandem::image_folder {

// 8 bits, gray or B,G,R, for files of these formats whose extent was checked. Transparency is
// dropped. Throws a Refusal (TANDEM_SKIP), or std::bad_alloc.
[[nodiscard]] cv::Mat decode_gif(Bytes file, bool gray);
[[nodiscard]] cv::Mat decode_heif(Bytes file, bool gray, const BeforePixels& before_pixels);

}  // namespace tandem::image_folder
