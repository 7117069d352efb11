// What the first bytes of an image file say, read without decoding it: enough to refuse what is too
// large, cut short or turned, before a library allocates for it or complains on stderr.
#pragma once

#include <cstdint>

#include "datasets/picture/bytes.h"

namespace tandem::image_folder {

using picture::Bytes;

[[nodiscard]] bool is_jpeg(Bytes file);
// PNG, BMP, WebP, TIFF or PNM. OpenCV's other decoders are rarely wanted and complain on stderr.
[[nodiscard]] bool is_known_format(Bytes file);

// "PNG"; "unknown" for none of the formats read here.
[[nodiscard]] const char* format_name(Bytes file);

struct Extent {
  int64_t width = 0, height = 0;  // 0: not said
};
// Of a PNG, BMP, WebP or PNM file; zeros for everything else.
[[nodiscard]] Extent extent_of(Bytes file);

// nullptr, or why a file of a format with lengths and check sums (PNG, BMP, WebP, PNM) cannot be
// whole.
[[nodiscard]] const char* damage_of(Bytes file);

// A JPEG's EXIF Orientation tag, 1 to 8; 1 if there is none or it is nonsense.
[[nodiscard]] int exif_orientation(Bytes jpeg);

}  // namespace tandem::image_folder
