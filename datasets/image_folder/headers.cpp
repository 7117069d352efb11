#include "datasets/image_folder/headers.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

namespace tandem::image_folder {
namespace {

uint64_t big_endian(Bytes file, size_t at, size_t bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes; ++i) value = value << 8 | file[at + i];
  return value;
}

uint64_t little_endian(Bytes file, size_t at, size_t bytes) {
  uint64_t value = 0;
  for (size_t i = bytes; i > 0; --i) value = value << 8 | file[at + i - 1];
  return value;
}

bool has(Bytes file, size_t at, const char* text, size_t length) {
  return file.size() >= at + length && std::memcmp(file.data() + at, text, length) == 0;
}

bool is_png(Bytes file) {
  return file.size() >= 33 && has(file, 0, "\x89PNG\r\n\x1a\n", 8);
}
bool is_bmp(Bytes file) {
  return file.size() >= 54 && has(file, 0, "BM", 2);
}
bool is_webp(Bytes file) {
  return file.size() >= 30 && has(file, 0, "RIFF", 4) && has(file, 8, "WEBP", 4);
}

constexpr std::array<uint32_t, 256> make_crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t n = 0; n < 256; ++n) {
    uint32_t c = n;
    for (int k = 0; k < 8; ++k) c = (c & 1U) != 0 ? 0xedb88320U ^ (c >> 1) : c >> 1;
    table[n] = c;
  }
  return table;
}

uint32_t crc_of(Bytes bytes) {
  static constexpr std::array<uint32_t, 256> table = make_crc_table();
  uint32_t crc = 0xffffffffU;
  for (const unsigned char byte : bytes) crc = table[(crc ^ byte) & 255U] ^ (crc >> 8);
  return ~crc;
}

const char* png_damage(Bytes file) {
  size_t at = 8;
  while (true) {
    if (file.size() < at + 12) return "truncated PNG: it ends before its end marker";
    const uint64_t length = big_endian(file, at, 4);
    if (length > file.size() - at - 12) return "truncated PNG: a chunk goes beyond its end";
    const Bytes covered = file.subspan(at + 4, length + 4);
    if (crc_of(covered) != big_endian(file, at + 8 + length, 4)) {
      return "damaged PNG: a check sum is wrong";
    }
    if (has(file, at + 4, "IEND", 4)) return nullptr;
    at += length + 12;
  }
}

const char* bmp_damage(Bytes file) {
  if (little_endian(file, 14, 4) < 40 || little_endian(file, 30, 4) != 0) return nullptr;
  const Extent extent = extent_of(file);
  const uint64_t bits = little_endian(file, 28, 2);
  const uint64_t row = (static_cast<uint64_t>(extent.width) * bits + 31) / 32 * 4;
  const uint64_t begin = little_endian(file, 10, 4);
  const bool whole = begin + row * static_cast<uint64_t>(extent.height) <= file.size();
  return whole ? nullptr : "truncated BMP: its rows go beyond its end";
}

const char* webp_damage(Bytes file) {
  const bool whole = little_endian(file, 4, 4) + 8 <= file.size();
  return whole ? nullptr : "truncated WebP: it is shorter than it says";
}

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

bool is_jpeg(Bytes file) {
  return has(file, 0, "\xff\xd8\xff", 3);
}

Extent extent_of(Bytes file) {
  const auto signed_at = [&](size_t at) {
    return std::abs(static_cast<int64_t>(static_cast<int32_t>(little_endian(file, at, 4))));
  };
  const auto whole = [](uint64_t value) { return static_cast<int64_t>(value); };
  if (is_png(file)) return {whole(big_endian(file, 16, 4)), whole(big_endian(file, 20, 4))};
  if (is_bmp(file) && little_endian(file, 14, 4) >= 40) return {signed_at(18), signed_at(22)};
  if (is_webp(file) && has(file, 12, "VP8X", 4)) {
    return {whole(little_endian(file, 24, 3)) + 1, whole(little_endian(file, 27, 3)) + 1};
  }
  return {};
}

const char* damage_of(Bytes file) {
  if (is_png(file)) return png_damage(file);
  if (is_bmp(file)) return bmp_damage(file);
  if (is_webp(file)) return webp_damage(file);
  return nullptr;
}

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
