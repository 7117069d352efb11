// The entries of the first directory of a TIFF block, which a TIFF file is and EXIF data hold, read
// within its bounds whatever it says.
#pragma once

#include <cstdint>

#include "datasets/picture/bytes.h"

namespace tandem::image_folder {

// Calls function(read, tag, at) for each entry of the first directory of a TIFF block, whose value
// is 8 bytes after `at`. read(at, bytes) is a number in the byte order of the block.
template <class Function>
void for_each_tag(picture::Bytes tiff, const Function& function) {
  const bool little = tiff[0] == 'I';
  const auto read = [&](size_t at, size_t bytes) {
    return little ? picture::little_endian(tiff, at, bytes) : picture::big_endian(tiff, at, bytes);
  };
  const size_t directory = read(4, 4);
  if (directory > tiff.size() || tiff.size() - directory < 2) return;
  const size_t count = read(directory, 2);
  for (size_t i = 0; i < count; ++i) {
    const size_t at = directory + 2 + 12 * i;
    if (at + 12 > tiff.size()) return;
    function(read, read(at, 2), at);
  }
}

// Whether a second directory follows the first one, as of a file with several pages.
inline bool has_second_directory(picture::Bytes tiff) {
  const auto number = tiff[0] == 'I' ? picture::little_endian : picture::big_endian;
  const size_t directory = number(tiff, 4, 4);
  if (directory > tiff.size() || tiff.size() - directory < 2) return false;
  const size_t next = directory + 2 + 12 * number(tiff, directory, 2);
  return next + 4 <= tiff.size() && number(tiff, next, 4) != 0;
}

// A value of a tag that is a byte, or a number of 16 or 32 bits.
template <class Read>
size_t value_bytes(const Read& read, size_t at) {
  const uint64_t type = read(at + 2, 2);
  return type == 1 ? 1 : type == 3 ? 2 : 4;
}

// The value of a tag that is one number.
template <class Read>
uint64_t tag_value(const Read& read, size_t at) {
  return read(at + 8, value_bytes(read, at));
}

}  // namespace tandem::image_folder
