// Forms of TIFF: the pixels of those that are read, and the true reason why others are not.
#include "plugins/abi.h"
#ifdef TANDEM_TEST_IMAGES

#include <gmock/gmock.h>

#include "tests/data/image_data.h"

namespace tandem {
namespace {

using test::number_of;
using test::read;
using test::reason_of;
using test::size_of;
using test::TempFolder;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

struct TiffForm {
  uint64_t channels = 1, bits = 8, format = 1, photometric = 1, planes = 1, tile = 0;
  uint64_t compression = 1;
  std::vector<uint64_t> extra = {};
  bool little = true;
};

// 64x64 pixels: channel c is 40 * (c + 1) everywhere, of the bits that a sample has.
std::string tiff_with(const TiffForm& form) {
  const uint64_t side = 64, bytes = form.bits / 8, area = side * side;
  std::string pixels;
  const auto sample = [&](uint64_t c) {
    const uint64_t value = 40 * (c + 1);
    return number_of(value << (form.bits > 8 ? 8U : 0U), bytes, form.little);
  };
  for (uint64_t plane = 0; plane < (form.planes == 2 ? form.channels : 1); ++plane) {
    for (uint64_t i = 0; i < area; ++i) {
      for (uint64_t c = 0; c < (form.planes == 2 ? 1 : form.channels); ++c) {
        pixels += sample(plane + c);
      }
    }
  }
  const uint64_t tiles = form.tile == 0 ? 0 : (side / form.tile) * (side / form.tile);
  const uint64_t parts = (tiles == 0 ? 1 : tiles) * (form.planes == 2 ? form.channels : 1);
  std::vector<uint64_t> begins, lengths(parts, pixels.size() / parts);
  for (uint64_t i = 0; i < parts; ++i) begins.push_back(8 + i * lengths[0]);
  std::vector<test::TiffTag> tags{{0x100, 4, {side}},
                                  {0x101, 4, {side}},
                                  {0x102, 3, std::vector<uint64_t>(form.channels, form.bits)},
                                  {0x103, 3, {form.compression}},
                                  {0x106, 3, {form.photometric}}};
  if (tiles == 0) tags.push_back({0x111, 4, begins});
  tags.push_back({0x115, 3, {form.channels}});
  if (tiles == 0) tags.push_back({0x116, 4, {side}});
  if (tiles == 0) tags.push_back({0x117, 4, lengths});
  tags.push_back({0x11c, 3, {form.planes}});
  if (tiles > 0) {
    tags.push_back({0x142, 3, {form.tile}});
    tags.push_back({0x143, 3, {form.tile}});
    tags.push_back({0x144, 4, begins});
    tags.push_back({0x145, 4, lengths});
  }
  if (!form.extra.empty()) tags.push_back({0x152, 3, form.extra});
  tags.push_back({0x153, 3, std::vector<uint64_t>(form.channels, form.format)});
  return test::tiff_of(tags, pixels, form.little);
}

// B,G,R of the first pixel.
std::vector<float> color_of(const std::string& tiff) {
  const std::vector<float> pixels = read("a.tif", tiff, size_of(64, 64)).pixels;
  return {pixels[0], pixels[64 * 64], pixels[2 * 64 * 64]};
}

TEST(TiffForms, BandsThatAreCalledGrayAreColorsAsThoseOf16Bits) {
  for (const bool little : {true, false}) {
    for (const uint64_t planes : {1, 2}) {
      const TiffForm three{3, 8, 1, 1, planes, 0, 1, {0, 0}, little};
      const TiffForm four{4, 8, 1, 1, planes, 0, 1, {0, 0, 0}, little};
      const TiffForm bare{4, 8, 1, 1, planes, 0, 1, {}, little};
      EXPECT_THAT(color_of(tiff_with(three)), ElementsAre(120, 80, 40)) << little << planes;
      EXPECT_THAT(color_of(tiff_with(four)), ElementsAre(120, 80, 40)) << little << planes;
      EXPECT_THAT(color_of(tiff_with(bare)), ElementsAre(120, 80, 40)) << little << planes;
    }
    const TiffForm deep{3, 16, 1, 1, 1, 0, 1, {0, 0}, little};
    EXPECT_THAT(color_of(tiff_with(deep)), ElementsAre(120, 80, 40));
  }
}

TEST(TiffForms, AChannelIsCalledAlphaIfItIsAlpha) {
  const auto remark_of = [](const TiffForm& form) {
    const TempFolder folder;
    DatasetOptions options = size_of(64, 64);
    options.source = folder.write("a.tif", tiff_with(form)).string();
    options.class_names = {"a", "b"};
    std::string text, reason;
    const auto stored = test::open_images(options).describe(0, &reason);
    for (const std::string& line : stored->remarks) text += line;
    return text;
  };
  EXPECT_THAT(remark_of({.channels = 3, .extra = {0, 0}}), IsEmpty());
  EXPECT_THAT(remark_of({.channels = 4, .photometric = 2, .extra = {2}}), HasSubstr("alpha"));
  EXPECT_THAT(remark_of({.channels = 2, .extra = {1}}), HasSubstr("alpha"));
  for (const TiffForm& form :
       {TiffForm{.channels = 2, .extra = {0}}, TiffForm{.channels = 4, .extra = {0, 0, 0}}}) {
    EXPECT_THAT(remark_of(form), HasSubstr("channels beside gray or the first three are dropped"));
    EXPECT_THAT(remark_of(form), Not(HasSubstr("alpha")));
  }
}

struct Unread {
  TiffForm form;
  const char* reason;
};

class UnreadTiff : public testing::TestWithParam<Unread> {};

TEST_P(UnreadTiff, IsNamedAndNotCalledDamaged) {
  const std::string reason = reason_of("a.tif", tiff_with(GetParam().form));
  EXPECT_THAT(reason,
              HasSubstr(std::string("not an image that is read here: ") + GetParam().reason));
}

INSTANTIATE_TEST_SUITE_P(
    Images, UnreadTiff,
    testing::Values(Unread{{.channels = 5, .extra = {0, 0, 0, 0}}, "a TIFF of 5 channels;"},
                    Unread{{.channels = 5, .bits = 16, .extra = {0, 0, 0, 0}},
                           "a TIFF of 5 channels;"},
                    Unread{{.channels = 2, .bits = 32, .format = 3, .extra = {0}},
                           "a TIFF of 2 channels of floats;"},
                    Unread{{.bits = 8, .format = 2}, "a TIFF of signed integers of 8 bits"},
                    Unread{{.bits = 16, .format = 3}, "a TIFF of floats of 16 bits"},
                    Unread{{.bits = 64, .format = 6}, "a TIFF of complex numbers"},
                    Unread{{.channels = 3, .bits = 16, .photometric = 2, .planes = 2},
                           "a TIFF of over 8 bits a channel whose channels are stored one behind"},
                    Unread{{.bits = 16, .photometric = 0},
                           "a TIFF of over 8 bits a channel in which 0 is white"},
                    Unread{{.compression = 34712}, "a TIFF compressed as JPEG 2000"}));

// Later versions of OpenCV read it.
TEST(TiffForms, SmallTilesAreReadOrNamed) {
  const std::string tiff = tiff_with({.tile = 16});
  const test::Sample sample = read("a.tif", tiff, size_of(64, 64));
  if (sample.status == SampleStatus::good) {
    EXPECT_EQ(sample.pixels[0], 40);
  } else {
    EXPECT_THAT(sample.reason, HasSubstr("a TIFF in tiles of 16x16 pixels"));
  }
}

TEST(TiffForms, AFileThatIsCutIsNotCalledAnUnreadForm) {
  const std::string cut = tiff_with({.channels = 3, .photometric = 2});
  EXPECT_THAT(reason_of("a.tif", cut.substr(0, 300)), Not(HasSubstr("not an image")));
}

TEST(PnmForms, AWhiteBelow255IsWhiteInEveryForm) {
  std::string gray, color, text;
  for (int i = 0; i < 20 * 16; ++i) {
    gray += '\x32';
    color += "\x64\x32\x0a";
    text += (i == 0 ? "" : " ") + std::string("50");
  }
  const std::vector<float> expected(3 * 20 * 16, 127);
  EXPECT_EQ(read("a.pgm", "P5 20 16 100\n" + gray).pixels, expected);
  EXPECT_EQ(read("b.pgm", "P2 20 16 100\n" + text + "\n").pixels, expected);
  const std::vector<float> pixels = read("c.ppm", "P6 20 16 100\n" + color).pixels;
  EXPECT_EQ(pixels[0], 25);
  EXPECT_EQ(pixels[20 * 16], 127);
  EXPECT_EQ(pixels[2 * 20 * 16], 255);
}

TEST(PnmForms, TextNeedsNoLineEndBehindItsLastValue) {
  std::string gray, color, bits;
  for (int i = 0; i < 20 * 16; ++i) {
    gray += (i == 0 ? "" : " ") + std::string("50");
    color += (i == 0 ? "" : " ") + std::string("50 50 50");
    bits += (i == 0 ? "" : " ") + std::string("0");
  }
  const std::vector<float> expected(3 * 20 * 16, 50), white(3 * 20 * 16, 255);
  EXPECT_EQ(read("a.pgm", "P2 20 16 255\n" + gray).pixels, expected);
  EXPECT_EQ(read("a.ppm", "P3 20 16 255\n" + color).pixels, expected);
  EXPECT_EQ(read("a.pbm", "P1 20 16\n" + bits).pixels, white);
}

TEST(PngForms, AnAppsPngIsNamed) {
  std::string png = test::encoded(".png", test::gradient(20, 16));
  png.insert(
      8, std::string("\0\0\0\x04", 4) + "CgBI" + std::string("\x50\0\x20\x02\x2b\xd5\xb3\x7f", 8));
  EXPECT_THAT(reason_of("a.png", png), HasSubstr("an iPhone app's PNG (CgBI); convert it"));
}

}  // namespace
}  // namespace tandem
#endif
