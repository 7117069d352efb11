// The headers of image files, read without decoding: enough to refuse a file that is too large or
// truncated before a library allocates memory for it or writes to stderr.
#pragma once

#include <cstdint>
#include <vector>

#include "datasets/picture/bytes.h"

namespace tandem::image_folder {

using picture::Bytes;

[[nodiscard]] bool is_jpeg(Bytes file);
[[nodiscard]] bool is_png(Bytes file);
[[nodiscard]] bool is_tiff(Bytes file);
[[nodiscard]] bool is_webp(Bytes file);
[[nodiscard]] bool is_gif(Bytes file);
// "AVIF" or "HEIC" by the brands of the file; null for any other file.
[[nodiscard]] const char* heif_name(Bytes file);
// PNG, BMP, WebP, TIFF or PNM. OpenCV's other decoders are rarely needed and write to stderr.
[[nodiscard]] bool is_known_format(Bytes file);

// "PNG"; "unknown" for none of the formats read here.
[[nodiscard]] const char* format_name(Bytes file);

struct Extent {
  int64_t width = 0, height = 0;  // 0: not known
};
// Of a PNG, BMP, WebP, TIFF, PNM, GIF, AVIF or HEIC file; zeros for other files and where the
// header has none.
[[nodiscard]] Extent extent_of(Bytes file);

// Bits of a channel of a PNG, BMP, WebP, TIFF or PNM file.
[[nodiscard]] int bits_of(Bytes file);
// 1 or 3, without alpha, of a PNG or PNM file; 0 of other files.
[[nodiscard]] int colors_of(Bytes file);
// Whether it is a PNM with its values as text, and one without a line end behind the last of them.
[[nodiscard]] bool is_text(Bytes file);
[[nodiscard]] bool is_text_without_end(Bytes file);
// The value that a PNM's header gives to white; 0 for other files.
[[nodiscard]] int64_t white_of_pnm(Bytes file);

// How the pixels of a TIFF are stored, by the tags of its first directory; any numbers in a hostile
// file.
struct TiffForm {
  int bits = 1;                          // of a channel
  double channels = 1;                   // of a pixel
  double strip_rows = 4294967295.0;      // all, if it says nothing
  double tile_width = 0, tile_rows = 0;  // 0: strips
  bool own_alpha = false;                // colors are not multiplied by alpha ("unassociated")
};
[[nodiscard]] TiffForm tiff_form(Bytes file);

// How the pixels of a WebP are stored, by its first chunks.
struct WebpForm {
  bool lossless = false, alpha = false, animated = false;
};
[[nodiscard]] WebpForm webp_form(Bytes file);

// The box "meta" of a HEIF file, which has the properties; it may follow the pictures. Empty if
// there is none.
[[nodiscard]] Bytes heif_header(Bytes file);

// Why a file of a format with lengths and check sums (PNG, BMP, WebP, PNM) cannot be whole, or why
// OpenCV might read it as another format, at some of which it ends the process; or null. `remark`
// becomes what is wrong with it though all of its pixels are there.
[[nodiscard]] const char* damage_of(Bytes file, const char*& remark);

// A BMP or WebP with a remark, mended in `room` so that its decoder takes it.
[[nodiscard]] Bytes mended(Bytes file, std::vector<unsigned char>& room);

// A PNG without damage (damage_of() is null) in `room`, without the chunks that do not change its
// pixels as they are read here: libpng writes to stderr about color profiles and texts that it
// dislikes.
[[nodiscard]] Bytes without_notes(Bytes png, std::vector<unsigned char>& room);

// Whether libtiff multiplies the colors of this TIFF by its alpha where OpenCV decodes it.
[[nodiscard]] bool is_multiplied(Bytes tiff);
// A TIFF for which is_multiplied() holds in `room`, marked as if that were done: then its colors
// are decoded as they are stored.
[[nodiscard]] Bytes with_colors_kept(Bytes tiff, std::vector<unsigned char>& room);

// Of a JPEG, as stored; zeros where it has no frame before its pixels.
struct JpegForm {
  Extent extent;
  int channels = 0;
};
[[nodiscard]] JpegForm jpeg_form(Bytes jpeg);

// The EXIF Orientation tag of a JPEG or WebP, 1 to 8; 1 if there is none or it is invalid, and for
// other formats.
[[nodiscard]] int exif_orientation(Bytes file);
// The same of a TIFF's own tag and of a PNG, which OpenCV turns, too.
[[nodiscard]] int orientation_of(Bytes file);

// The scans of a JPEG, each of which a decoder may take through all of its blocks.
[[nodiscard]] int64_t jpeg_scans(Bytes jpeg);

// Calls function(marker, segment) for each segment of a JPEG before the compressed pixels, without
// its marker and length, until it returns false. Returns the offset at which it stopped.
template <class Function>
size_t for_each_segment(Bytes jpeg, const Function& function, size_t at = 2) {
  while (at + 4 <= jpeg.size() && jpeg[at] == 0xff) {
    const unsigned char marker = jpeg[at + 1];
    if (marker == 0xff) {  // a fill byte
      ++at;
      continue;
    }
    if (marker == 0xda || marker == 0xd9) break;
    const size_t length = picture::big_endian(jpeg, at + 2, 2);
    if (length < 2 || at + 2 + length > jpeg.size()) break;
    if (!function(marker, jpeg.subspan(at + 4, length - 2))) break;
    at += 2 + length;
  }
  return at;
}

}  // namespace tandem::image_folder
