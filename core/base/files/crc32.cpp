#include "core/base/files/crc32.h"

#include <array>
#include <cstring>

namespace tandem {
namespace {

// tables[k][b]: byte b with k zero bytes after it, so that eight bytes are looked up at once.
using Tables = std::array<std::array<uint32_t, 256>, 8>;

// `polynomial`: its bits in reverse.
Tables make_tables(uint32_t polynomial) {
  Tables made{};
  for (uint32_t n = 0; n < 256; ++n) {
    uint32_t c = n;
    for (int bit = 0; bit < 8; ++bit) c = (c & 1U) != 0 ? polynomial ^ (c >> 1) : c >> 1;
    made[0][n] = c;
  }
  for (size_t k = 1; k < made.size(); ++k) {
    for (size_t n = 0; n < 256; ++n) {
      const uint32_t c = made[k - 1][n];
      made[k][n] = made[0][c & 255U] ^ (c >> 8);
    }
  }
  return made;
}

uint32_t checksum(const Tables& t, const void* data, size_t bytes, uint32_t before) {
  const auto* at = static_cast<const unsigned char*>(data);
  uint32_t crc = ~before;
  for (; bytes >= 8; bytes -= 8, at += 8) {
    uint32_t low = 0, high = 0;
    std::memcpy(&low, at, 4);
    std::memcpy(&high, at + 4, 4);
    low ^= crc;
    crc = t[7][low & 255U] ^ t[6][low >> 8 & 255U] ^ t[5][low >> 16 & 255U] ^ t[4][low >> 24] ^
          t[3][high & 255U] ^ t[2][high >> 8 & 255U] ^ t[1][high >> 16 & 255U] ^ t[0][high >> 24];
  }
  for (; bytes > 0; --bytes, ++at) crc = t[0][(crc ^ *at) & 255U] ^ (crc >> 8);
  return ~crc;
}

}  // namespace

uint32_t crc32(const void* data, size_t bytes, uint32_t before) {
  static const Tables tables = make_tables(0xedb88320U);
  return checksum(tables, data, bytes, before);
}

uint32_t crc32c(const void* data, size_t bytes) {
  static const Tables tables = make_tables(0x82f63b78U);
  return checksum(tables, data, bytes, 0);
}

}  // namespace tandem
