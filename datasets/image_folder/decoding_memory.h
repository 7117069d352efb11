// How large a picture may be, and how much memory a decoder takes for it, from its headers. A small
// file may ask for much, so large pictures are decoded one at a time, and none that would take more
// than 600 MiB.
#pragma once

#include <cstdint>
#include <functional>

#include "datasets/picture/bytes.h"

namespace tandem::image_folder {

using picture::Bytes;

// Refusal (TANDEM_SKIP) for a picture without pixels or over 100 megapixels.
void check_extent(int64_t width, int64_t height);

// Called before a decoder takes memory for the pixels, with its bytes, and with width and height,
// which were checked.
using BeforePixels = std::function<void(double bytes, int64_t width, int64_t height)>;

// Of the decoder and of the pixels as 8 bits, for each pixel of an AVIF or HEIC: planes, their
// mixture and the result.
constexpr int64_t heif_bytes_per_pixel = 9;

// Of a PNG, BMP, WebP, TIFF, PNM or GIF; 0 for other files.
[[nodiscard]] double decoding_bytes(Bytes file);

// Whether a picture of more than 8 bits a channel is so large that its lower bits are dropped while
// it is decoded, as the decoders of PNG and PNM can.
[[nodiscard]] bool drops_lower_bits(Bytes file);

// Whether others have to wait meanwhile. Refusal (TANDEM_SKIP) if it is too much. `format` and the
// size are for its text.
[[nodiscard]] bool is_large_decoding(double bytes, const char* format, int64_t width,
                                     int64_t height);

// std::bad_alloc if so much memory, and some more, cannot be had now. libheif, libtiff, libwebp and
// libpng report a shortage as they report damage, for which a sample would be left out, so it is
// tried before.
void require_memory(double bytes);

}  // namespace tandem::image_folder
