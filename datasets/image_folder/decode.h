// From a file to pixels: 8 bits, B,G,R or gray, the right way up. Content decides how it is read,
// not its extension. Whatever is wrong with a file is a Refusal of status TANDEM_SKIP that says
// what, and a JPEG that is cut or damaged is never shown as a half grey picture. Nothing is
// printed, but for a line that OpenCV 4.6 writes on stderr itself for some BMP, TIFF and PNM with
// damaged headers.
#pragma once

#include <opencv2/core.hpp>
#include <string>
#include <vector>

namespace tandem::image_folder {

struct DecodeOptions {
  bool gray = false;
  // JPEG only: it may come halved (up to three times) as long as its shorter side keeps this many
  // pixels; 0: full size. Halving while decoding is faster and smoother than shrinking after.
  int shorter_side = 0;
};

[[nodiscard]] cv::Mat decode_file(const std::string& path, const DecodeOptions& options);

}  // namespace tandem::image_folder
