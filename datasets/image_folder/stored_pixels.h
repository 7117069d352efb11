// What a PNG or TIFF says of its pixels, judged before a library reads them.
#pragma once

#include "datasets/picture/bytes.h"

namespace tandem::image_folder {

// Why the file, a PNG or a TIFF by its first bytes, is damaged or truncated; null if that is not
// seen. A PNG is not damaged by what has no pixels: `remark` then says what is wrong with it.
[[nodiscard]] const char* png_damage(picture::Bytes file, const char*& remark);
[[nodiscard]] const char* tiff_damage(picture::Bytes file);

}  // namespace tandem::image_folder
