#include "core/report/page/png.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/files/crc32.h"

namespace tandem {
namespace {

std::string big_endian(uint32_t value) {
  std::string bytes;
  for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(value >> shift & 255U);
  return bytes;
}

uint32_t adler_of(const std::string& bytes) {
  uint32_t a = 1, b = 0;
  for (const char c : bytes) {
    a = (a + static_cast<unsigned char>(c)) % 65521;
    b = (b + a) % 65521;
  }
  return b << 16 | a;
}

std::string chunk(const std::string& type, const std::string& data) {
  const std::string covered = type + data;
  return big_endian(static_cast<uint32_t>(data.size())) + covered +
         big_endian(crc32(covered.data(), covered.size()));
}

// A zlib stream (RFC 1950) of stored blocks (RFC 1951).
std::string stored(const std::string& data) {
  constexpr size_t largest_block = 65535;
  std::string result = "\x78\x01";
  for (size_t at = 0; at < data.size() || at == 0; at += largest_block) {
    const size_t length = std::min(largest_block, data.size() - at);
    const bool last = at + length >= data.size();
    const auto low = static_cast<uint16_t>(length);
    const auto inverse = static_cast<uint16_t>(~low);
    result += last ? '\1' : '\0';
    for (const uint16_t number : {low, inverse}) {
      result += static_cast<char>(number & 255U);
      result += static_cast<char>(number >> 8);
    }
    result.append(data, at, length);
  }
  return result + big_endian(adler_of(data));
}

}  // namespace

std::string to_png(int64_t width, int64_t height, const std::vector<unsigned char>& pixels) {
  if (width < 1 || height < 1 || pixels.size() != static_cast<size_t>(3 * width * height)) {
    throw error("a PNG of {}x{} has {} bytes of pixels", width, height, pixels.size());
  }
  std::string rows;
  for (int64_t y = 0; y < height; ++y) {
    rows += '\0';  // no filter
    rows.append(reinterpret_cast<const char*>(pixels.data()) + 3 * width * y,
                static_cast<size_t>(3 * width));
  }
  const std::string header = big_endian(static_cast<uint32_t>(width)) +
                             big_endian(static_cast<uint32_t>(height)) +
                             std::string("\x08\x02\x00\x00\x00", 5);
  return std::string("\x89PNG\r\n\x1a\n", 8) + chunk("IHDR", header) + chunk("IDAT", stored(rows)) +
         chunk("IEND", "");
}

}  // namespace tandem
