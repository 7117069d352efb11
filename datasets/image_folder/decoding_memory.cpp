#include "datasets/image_folder/decoding_memory.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <new>

#include "datasets/image_folder/image_headers.h"
#include "plugins/sdk.h"

namespace tandem::image_folder {
namespace {

constexpr int64_t pixel_limit = 100'000'000;
constexpr double max_bytes = 600.0 * (1 << 20);
constexpr double max_shown = 1e15;                 // MiB; hostile headers ask for any number
constexpr double large_picture = 32e6;             // pixels
constexpr double large_bytes = 3 * large_picture;  // as 8 bits, B,G,R

double pixels_of(Bytes file) {
  const Extent extent = extent_of(file);
  return static_cast<double>(extent.width) * static_cast<double>(extent.height);
}

// OpenCV decodes a strip or tile at a time, those of 8 bits by libtiff to R,G,B,A; of some files
// with alpha from a copy.
double tiff_bytes(Bytes file) {
  const TiffForm form = tiff_form(file);
  const Extent extent = extent_of(file);
  const double pixels = pixels_of(file), channel = std::max(1.0, form.bits / 8.0);
  const double rows = std::min<double>(static_cast<double>(extent.height), form.strip_rows);
  const double block = form.tile_width > 0 ? form.tile_width * form.tile_rows
                                           : static_cast<double>(extent.width) * rows;
  const double stored = block * form.channels * channel;
  const double copy = is_multiplied(file) ? static_cast<double>(file.size()) : 0;
  if (form.bits <= 8) return 3 * pixels + stored + 4 * block + copy;
  return 3 * channel * pixels + std::max(stored, 3 * pixels);
}

// As measured, besides some 10 MB. libwebp decodes to B,G,R or B,G,R,A, of which OpenCV makes gray
// or B,G,R. Of a lossless picture, and of the alpha of a lossy one, it has all pixels as A,R,G,B
// before. When they are free again, there are two pictures of B,G,R if it is turned.
double webp_bytes(Bytes file) {
  const WebpForm form = webp_form(file);
  if (form.lossless) return (form.alpha ? 8 : 7) * pixels_of(file);
  if (form.alpha) return 9 * pixels_of(file);
  return (exif_orientation(file) == 1 ? 4 : 6) * pixels_of(file);
}

}  // namespace

void check_extent(int64_t width, int64_t height) {
  if (width < 1 || height < 1) throw sdk::skip("has no pixels (", width, "x", height, ")");
  if (width > pixel_limit / height) {
    throw sdk::skip("too large: ", width, "x", height, " is over the limit of 100 megapixels");
  }
}

double decoding_bytes(Bytes file) {
  const double pixels = pixels_of(file);
  if (is_tiff(file)) return tiff_bytes(file);
  if (is_webp(file)) return webp_bytes(file);
  if (!is_known_format(file) && !is_gif(file)) return 0;
  // 16 bits, and then 8.
  return bits_of(file) > 8 && !drops_lower_bits(file) ? 9 * pixels : 3 * pixels;
}

bool drops_lower_bits(Bytes file) {
  return !is_tiff(file) && bits_of(file) > 8 && pixels_of(file) > large_picture;
}

bool is_large_decoding(double bytes, const char* format, int64_t width, int64_t height) {
  if (bytes > max_bytes) {
    throw sdk::skip("too large: a ", format, " of ", width, "x", height, " and this form takes ",
                    static_cast<int64_t>(std::min(std::ceil(bytes / (1 << 20)), max_shown)),
                    " MiB of memory to decode; 600 MiB are the limit");
  }
  return bytes > large_bytes;
}

void require_memory(double bytes) {
  constexpr double beside = 4 << 20;  // what libraries keep beside the pixels
  bytes += bytes / 4 + beside;
  // Else a compiler may leave out an allocation that nothing uses.
  void* volatile tried = std::malloc(static_cast<size_t>(std::clamp(bytes, 1.0, max_bytes)));
  if (tried == nullptr) throw std::bad_alloc();
  std::free(tried);
}

}  // namespace tandem::image_folder
