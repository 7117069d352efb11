#include "datasets/image_folder/stored_pixels.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>

#include "datasets/image_folder/tiff_tags.h"

namespace tandem::image_folder {

using picture::big_endian;
using picture::Bytes;
using picture::has;

namespace {

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

// By the PNG specification, 11.2.1.
bool is_possible_header(Bytes png) {
  const unsigned depth = png[24], color = png[25];
  const bool is_deep = depth == 8 || depth == 16;
  const bool is_shallow = depth == 1 || depth == 2 || depth == 4;
  const bool fits = color == 0   ? is_shallow || is_deep
                    : color == 3 ? is_shallow || depth == 8
                                 : (color == 2 || color == 4 || color == 6) && is_deep;
  return fits && png[26] == 0 && png[27] == 0 && png[28] <= 1;
}

// A chunk at `at` that libpng is not given: its name begins with a small letter.
bool is_png_note(Bytes png, size_t at) {
  return std::islower(png[at + 4]) != 0 && !has(png, at + 4, "tRNS", 4) &&
         !has(png, at + 4, "eXIf", 4);
}

}  // namespace

const char* png_damage(Bytes file, const char*& remark) {
  constexpr size_t with_header = 33, around = 12;  // length, name and check sum of a chunk
  if (file.size() < with_header) return "truncated PNG: it ends before its end marker";
  if (big_endian(file, 8, 4) != 13 || !has(file, 12, "IHDR", 4)) {
    return "damaged PNG: it does not begin with its header";
  }
  bool has_pixels = false;
  for (size_t at = 8;;) {
    if (file.size() < at + around) {
      remark = "no end marker (PNG)";
      return has_pixels ? nullptr : "truncated PNG: it ends before its end marker";
    }
    const uint64_t length = big_endian(file, at, 4);
    if (length > file.size() - at - around) return "truncated PNG: a chunk goes beyond its end";
    const bool is_note = is_png_note(file, at);
    if (crc_of(file.subspan(at + 4, length + 4)) != big_endian(file, at + 8 + length, 4)) {
      if (!is_note) return "damaged PNG: a check sum is wrong";
      remark = "a wrong check sum of what has no pixels (PNG)";
    }
    if (at == 8 && !is_possible_header(file)) {
      return "damaged PNG: its header names a form of pixels that there is not";
    }
    if (has(file, at + 4, "IDAT", 4)) has_pixels = true;
    if (has(file, at + 4, "IEND", 4)) return nullptr;
    at += length + around;
  }
}

// libtiff also reads sizes of other types, which are elsewhere in the file.
const char* tiff_damage(Bytes file) {
  bool is_usual = true;
  for_each_tag(file, [&](const auto& read, uint64_t tag, size_t at) {
    constexpr std::array<uint64_t, 7> sizes{0x0100, 0x0101, 0x0102, 0x0115, 0x0116, 0x0142, 0x0143};
    const uint64_t type = read(at + 2, 2);
    const bool is_size = std::find(sizes.begin(), sizes.end(), tag) != sizes.end();
    if (is_size && type != 1 && type != 3 && type != 4) is_usual = false;
  });
  if (!is_usual) return "damaged TIFF: a size in it is no number of 8, 16 or 32 bits";
  return nullptr;
}

}  // namespace tandem::image_folder
