// GIF (its first frame) by giflib, AVIF and HEIC by libheif. Each library is optional when Tandem
// is built; without it a file of the format is refused with its reason.
#pragma once

#include <opencv2/core.hpp>

#include "datasets/picture/bytes.h"

namespace tandem::image_folder {

using picture::Bytes;

[[nodiscard]] bool is_gif(Bytes file);
// "AVIF" or "HEIC" by the brands of the file; null for any other file.
[[nodiscard]] const char* heif_name(Bytes file);

// 8 bits, gray or B,G,R, for files of these formats whose extent was checked. Transparency is
// dropped. Throws a Refusal (TANDEM_SKIP).
[[nodiscard]] cv::Mat decode_gif(Bytes file, bool gray);
[[nodiscard]] cv::Mat decode_heif(Bytes file, bool gray);

}  // namespace tandem::image_folder
