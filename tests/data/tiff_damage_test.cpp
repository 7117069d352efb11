// Damaged and hostile TIFFs: the reason why each is left out.
#include "plugins/abi.h"
#ifdef TANDEM_TEST_IMAGES

#include <gmock/gmock.h>

#include <algorithm>

#include "tests/data/image_data.h"

namespace tandem {
namespace {

using test::noise;
using test::read;
using test::reason_of;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

struct Tag {
  unsigned tag, type, count, value;
};

// The header of a little-endian TIFF of these tags, without pixels.
std::string tiff_of(const std::vector<Tag>& tags) {
  const auto number = [](unsigned value, int bytes) {
    std::string text;
    for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> 8 * i);
    return text;
  };
  std::string file =
      "II" + number(42, 2) + number(8, 4) + number(static_cast<unsigned>(tags.size()), 2);
  for (const Tag& one : tags) {
    file += number(one.tag, 2) + number(one.type, 2) + number(one.count, 4) + number(one.value, 4);
  }
  return file + number(0, 4) + std::string(64, ' ');
}

constexpr unsigned whole_number = 4, long_number = 16;
constexpr unsigned width = 0x100, height = 0x101, bits = 0x102, channels = 0x115, rows = 0x116;

// libtiff takes the first width, and a width of 64 bits that is elsewhere in the file.
TEST(DamagedImages, ATiffCannotHideItsSize) {
  EXPECT_THAT(reason_of("a.tif", tiff_of({{width, whole_number, 1, 30000},
                                          {width, whole_number, 1, 20},
                                          {height, whole_number, 1, 30000}})),
              HasSubstr("too large: 30000x30000"));
  EXPECT_THAT(
      reason_of("a.tif", tiff_of({{width, long_number, 1, 20}, {height, whole_number, 1, 30000}})),
      HasSubstr("damaged TIFF: a size in it is no number of 8, 16 or 32 bits"));
}

TEST(DamagedImages, ATiffThatTakesMuchMemoryIsRefused) {
  std::vector<Tag> tags{{width, whole_number, 1, 9000},
                        {height, whole_number, 1, 9000},
                        {bits, whole_number, 1, 8},
                        {channels, whole_number, 1, 3},
                        {rows, whole_number, 1, 16}};
  EXPECT_THAT(reason_of("a.tif", tiff_of(tags)), Not(HasSubstr("too large")));
  tags[2].value = 16;
  EXPECT_THAT(reason_of("a.tif", tiff_of(tags)),
              HasSubstr("too large: a TIFF of 9000x9000 and this form takes 696 MiB of memory to "
                        "decode; 600 MiB are the limit"));
  tags[2].value = 8;
  tags.pop_back();  // one strip
  EXPECT_THAT(reason_of("a.tif", tiff_of(tags)), HasSubstr("takes 773 MiB of memory to decode"));
}

// A tile of 4294967295 rows and columns.
TEST(DamagedImages, TheMemoryThatAHostileTiffTakesIsAWholeNumber) {
  const unsigned most = 4294967295U;
  EXPECT_THAT(reason_of("a.tif", tiff_of({{width, whole_number, 1, 9000},
                                          {height, whole_number, 1, 9000},
                                          {bits, whole_number, 1, 16},
                                          {channels, whole_number, 1, most},
                                          {0x142, whole_number, 1, most},
                                          {0x143, whole_number, 1, most}})),
              HasSubstr("takes 1000000000000000 MiB"));
  EXPECT_THAT(reason_of("a.tif", tiff_of({{width, whole_number, 1, 9000},
                                          {height, whole_number, 1, 9000},
                                          {bits, whole_number, 1, 16},
                                          {channels, whole_number, 1, 30000}})),
              HasSubstr("takes 4635321 MiB"));
}

constexpr int lzw = 5, deflate = 32946, packed_bits = 32773, lzma = 34925;

std::string tiff_of(int compression) {
  std::vector<uchar> bytes;
  cv::imencode(".tiff", noise(40, 30), bytes, {cv::IMWRITE_TIFF_COMPRESSION, compression});
  return {bytes.begin(), bytes.end()};
}

constexpr const char* not_decompressed = "damaged TIFF: not all of its pixels can be decompressed";

// libtiff makes black pixels of a strip that it cannot decompress.
TEST(DamagedImages, ATiffWhosePixelsAreNotCompressedAsItSaysIsLeftOut) {
  for (const int compression : {lzw, deflate, lzma}) {
    const std::string tiff = tiff_of(compression);
    EXPECT_EQ(read("a.tiff", tiff).status, SampleStatus::good) << compression;
    std::string damaged = tiff;  // its pixels follow the header of 8 bytes
    std::fill_n(damaged.begin() + 8, 64, '\0');
    EXPECT_THAT(reason_of("a.tiff", damaged), HasSubstr(not_decompressed)) << compression;
    if (compression != lzw) continue;  // the others store noise as it is
    damaged = tiff;
    std::fill_n(damaged.begin() + 2000, 500, '\xff');
    EXPECT_THAT(reason_of("a.tiff", damaged), HasSubstr(not_decompressed)) << compression;
  }
}

TEST(DamagedImages, ATiffWithAnOddUnitOfResolutionIsRead) {
  const auto entry = [](int tag, int value) {
    return test::number_of(tag, 2) + test::number_of(3, 2) + test::number_of(1, 4) +
           test::number_of(value, 4);
  };
  constexpr int planes = 0x11c, unit = 0x128;
  std::string tiff = tiff_of(lzw);
  const size_t at = tiff.find(entry(planes, 1));  // the default
  ASSERT_NE(at, std::string::npos);
  tiff.replace(at, 12, entry(unit, 0));
  EXPECT_EQ(read("a.tiff", tiff).status, SampleStatus::good);
}

TEST(DamagedImages, ATiffOfACompressionThatThereIsNotIsLeftOut) {
  const std::string tiff = tiff_of(packed_bits);
  EXPECT_EQ(read("a.tiff", tiff).status, SampleStatus::good);
  const auto entry = [](int compression) {
    return test::number_of(0x103, 2) + test::number_of(3, 2) + test::number_of(1, 4) +
           test::number_of(compression, 4);
  };
  const auto reason_with = [&](int compression) {
    std::string other = tiff;
    other.replace(other.find(entry(packed_bits)), 12, entry(compression));
    return reason_of("a.tiff", other);
  };
  EXPECT_THAT(reason_with(65000),
              AllOf(HasSubstr("not an image that is read here: a TIFF of compression 65000; store"),
                    Not(HasSubstr("damaged"))));
  EXPECT_THAT(reason_with(lzma), HasSubstr(not_decompressed));
  // WebP, which not every libtiff has.
  EXPECT_THAT(reason_with(50001),
              AnyOf(HasSubstr(not_decompressed), HasSubstr("a TIFF compressed as WebP")));
}

}  // namespace
}  // namespace tandem

#endif
