#include "datasets/image_folder/headers.h"

namespace tandem::image_folder {
namespace {

using picture::big_endian;
using picture::has;
using picture::little_endian;

// The Orientation tag (0x0112) of the first directory of a TIFF block.
int tiff_orientation(Bytes tiff) {
  if (tiff.size() < 8) return 1;
  const bool little = tiff[0] == 'I';
  const auto read = [&](size_t at, size_t bytes) {
    return little ? little_endian(tiff, at, bytes) : big_endian(tiff, at, bytes);
  };
  if (read(2, 2) != 42) return 1;
  const size_t directory = read(4, 4);
  if (directory > tiff.size() || tiff.size() - directory < 2) return 1;
  const size_t count = read(directory, 2);
  for (size_t i = 0; i < count; ++i) {
    const size_t at = directory + 2 + 12 * i;
    if (at + 12 > tiff.size()) return 1;
    if (read(at, 2) != 0x0112) continue;
    const auto value = static_cast<int>(read(at + 8, 2));
    return value >= 1 && value <= 8 ? value : 1;
  }
  return 1;
}

}  // namespace

int exif_orientation(Bytes jpeg) {
  size_t at = 2;
  while (at + 4 <= jpeg.size() && jpeg[at] == 0xff) {
    const unsigned char marker = jpeg[at + 1];
    if (marker == 0xff) {  // a fill byte
      ++at;
      continue;
    }
    if (marker == 0xda || marker == 0xd9) return 1;  // the picture begins: no EXIF before it
    const size_t length = big_endian(jpeg, at + 2, 2);
    if (length < 2 || at + 2 + length > jpeg.size()) return 1;
    if (marker == 0xe1 && length >= 8 && has(jpeg, at + 4, "Exif\0", 6)) {
      return tiff_orientation(jpeg.subspan(at + 10, length - 8));
    }
    at += 2 + length;
  }
  return 1;
}

}  // namespace tandem::image_folder
