#include "core/base/files/crc32.h"

#include <gtest/gtest.h>

#include <string>

namespace tandem {
namespace {

// The values of zlib.crc32.
TEST(Crc32, IsThatOfPngAndGzip) {
  EXPECT_EQ(crc32("", 0), 0U);
  EXPECT_EQ(crc32("123456789", 9), 0xcbf43926U);
  EXPECT_EQ(crc32("The quick brown fox jumps over the lazy dog", 43), 0x414fa339U);
}

TEST(Crc32, OfPartsIsThatOfTheWhole) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += static_cast<char>(i * 37);
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    const uint32_t first = crc32(text.data(), cut);
    EXPECT_EQ(crc32(text.data() + cut, text.size() - cut, first), crc32(text.data(), text.size()));
  }
}

}  // namespace
}  // namespace tandem
