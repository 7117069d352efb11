// What a PNG or TIFF says of its pixels, judged before a library reads them.
#pragma once

#include "datasets/picture/bytes.h"

namespace tandem::image_folder {

// Why the file, a PNG or a TIFF by its first bytes, is damaged or truncated; null if that is not
// seen.
[[nodiscard]] const char* png_damage(picture::Bytes file);
[[nodiscard]] const char* tiff_damage(picture::Bytes file);

}  // namespace tandem::image_folder
