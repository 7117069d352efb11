#include "datasets/image_folder/image_headers.h"

#include "datasets/image_folder/stored_pixels.h"
#include "datasets/image_folder/tiff_tags.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

namespace tandem::image_folder {
namespace {

using picture::big_endian;
using picture::has;
using picture::little_endian;

bool is_bmp(Bytes file) {
  return file.size() >= 54 && has(file, 0, "BM", 2);
}
bool is_pnm(Bytes file) {
  const bool has_name = file.size() >= 8 && file[0] == 'P' && file[1] >= '1' && file[1] <= '6';
  return has_name && (file[2] == ' ' || (file[2] >= '\t' && file[2] <= '\r'));
}

// What the fourth channel is: 0 something, 1 alpha that the colors are multiplied by, 2 alpha that
// they are not (and 999, of Corel Draw).
constexpr uint64_t extra_samples = 0x0152, multiplied = 1;

template <class Read>
bool says_own_alpha(const Read& read, uint64_t tag, size_t at) {
  return tag == extra_samples && read(at + 4, 4) == 1 && tag_value(read, at) > multiplied;
}

// ImageWidth and ImageLength. Of a tag that is there twice libtiff takes one, and here the larger.
Extent tiff_extent(Bytes file) {
  Extent extent;
  for_each_tag(file, [&](const auto& read, uint64_t tag, size_t at) {
    const auto value = static_cast<int64_t>(tag_value(read, at));
    if (tag == 0x0100) extent.width = std::max(extent.width, value);
    if (tag == 0x0101) extent.height = std::max(extent.height, value);
  });
  return extent;
}

// The first Orientation tag (0x0112); 1 if there is none or it is out of range.
int tiff_orientation(Bytes tiff) {
  if (tiff.size() < 8 ||
      (tiff[0] == 'I' ? little_endian(tiff, 2, 2) : big_endian(tiff, 2, 2)) != 42)
    return 1;
  int orientation = 0;
  for_each_tag(tiff, [&](const auto& read, uint64_t tag, size_t at) {
    if (tag == 0x0112 && orientation == 0) orientation = static_cast<int>(read(at + 8, 2));
  });
  return orientation >= 1 && orientation <= 8 ? orientation : 1;
}

// Extended, lossless and lossy files each have their own header.
Extent webp_extent(Bytes file) {
  const auto whole = [](uint64_t value) { return static_cast<int64_t>(value); };
  if (has(file, 12, "VP8X", 4)) {
    return {whole(little_endian(file, 24, 3)) + 1, whole(little_endian(file, 27, 3)) + 1};
  }
  if (has(file, 12, "VP8L", 4)) {
    const uint64_t bits = little_endian(file, 21, 4);
    return {whole(bits & 0x3fffU) + 1, whole(bits >> 14 & 0x3fffU) + 1};
  }
  if (has(file, 12, "VP8 ", 4)) {
    return {whole(little_endian(file, 26, 2) & 0x3fffU),
            whole(little_endian(file, 28, 2) & 0x3fffU)};
  }
  return {};
}

struct PnmHeader {
  Extent extent;
  int64_t greatest = 1;  // sample value; bit maps have none
  size_t end = 0;        // the offset of the samples; 0: the header is invalid
};

PnmHeader pnm_header(Bytes file) {
  PnmHeader header;
  const bool bits = file[1] == '1' || file[1] == '4';
  std::array<int64_t, 3> numbers{0, 0, 1};
  size_t at = 2;
  for (size_t i = 0; i < (bits ? 2U : 3U); ++i) {
    while (at < file.size() && (std::isspace(file[at]) != 0 || file[at] == '#')) {
      if (file[at] == '#') {
        while (at < file.size() && file[at] != '\n') ++at;
      } else {
        ++at;
      }
    }
    const auto* text = reinterpret_cast<const char*>(file.data());
    const auto [stop, status] = std::from_chars(text + at, text + file.size(), numbers[i]);
    if (status != std::errc{}) return header;
    at = static_cast<size_t>(stop - text);
  }
  header.extent = {numbers[0], numbers[1]};
  header.greatest = numbers[2];
  header.end = at + 1;
  return header;
}

// The largest "ispe" property: smaller ones are of tiles and previews.
Extent heif_extent(Bytes file) {
  constexpr size_t searched = size_t{1} << 20, length = 16;
  const Bytes meta = heif_header(file);
  Extent extent;
  uint64_t largest = 0;  // of two numbers of 32 bits, whose product no int64_t has room for
  for (size_t at = 0; at + length <= std::min(meta.size(), searched); ++at) {
    if (!has(meta, at, "ispe", 4)) continue;
    const uint64_t width = big_endian(meta, at + 8, 4), height = big_endian(meta, at + 12, 4);
    if (width * height <= largest) continue;
    largest = width * height;
    extent = {static_cast<int64_t>(width), static_cast<int64_t>(height)};
  }
  return extent;
}

// Bytes that the file's rows take, and without the filling behind the last of them.
std::pair<uint64_t, uint64_t> bmp_bytes(Bytes file) {
  const Extent extent = extent_of(file);
  const uint64_t bits = static_cast<uint64_t>(extent.width) * little_endian(file, 28, 2);
  const uint64_t begin = little_endian(file, 10, 4), row = (bits + 31) / 32 * 4;
  const uint64_t all = begin + row * static_cast<uint64_t>(extent.height);
  return {all, all - (row - (bits + 7) / 8)};
}

const char* bmp_damage(Bytes file, const char*& remark) {
  if (little_endian(file, 14, 4) < 40 || little_endian(file, 30, 4) != 0) return nullptr;
  const auto [all, needed] = bmp_bytes(file);
  if (all <= file.size()) return nullptr;
  if (needed > file.size()) return "truncated BMP: its rows go beyond its end";
  remark = "no filling behind the last row (BMP)";
  return nullptr;
}

// The offset behind the chunk with the pixels; 0: it is not whole.
size_t end_of_webp_pixels(Bytes file) {
  for (size_t at = 12; at + 8 <= file.size();) {
    const uint64_t length = little_endian(file, at + 4, 4);
    if (length > file.size() - at - 8) return 0;
    at += 8 + length;
    if (has(file, at - length - 8, "VP8", 3) && file[at - length - 5] != 'X') return at;
    at += length % 2;
  }
  return 0;
}

const char* webp_damage(Bytes file, const char*& remark) {
  if (little_endian(file, 4, 4) + 8 <= file.size()) return nullptr;
  if (end_of_webp_pixels(file) == 0) return "truncated WebP: it is shorter than it says";
  remark = "shorter than it says, behind its pixels (WebP)";
  return nullptr;
}

const char* pnm_damage(Bytes file) {
  const PnmHeader header = pnm_header(file);
  const auto [width, height] = header.extent;
  constexpr int64_t absurd = 1'000'000'000;  // larger products overflow
  if (header.end == 0 || width < 1 || height < 1 || width > absurd || height > absurd)
    return "damaged PNM: its header makes no sense";
  const int64_t row = file[1] == '4' ? (width + 7) / 8 : file[1] == '6' ? 3 * width : width;
  // Each sample as text has a digit and a space, each bit at least a digit.
  const int64_t sample_bytes = file[1] <= '3' || header.greatest < 256 ? 1 : 2;
  const auto samples = static_cast<uint64_t>(row * height * sample_bytes);
  const bool whole = header.end <= file.size() && samples <= file.size() - header.end;
  return whole ? nullptr : "truncated PNM: its rows go beyond its end";
}

// OpenCV asks its decoders in turn. That of AVIF comes first, and those of DICOM and DTED are asked
// about a WebP whose header its own decoder does not take.
const char* second_format(Bytes file) {
  if (has(file, 4, "ftyp", 4)) return "damaged: it is marked as AVIF or HEIC, too";
  if (is_webp(file) && has(file, 128, "DICM", 4)) return "damaged WebP: it is marked as DICOM, too";
  if (is_webp(file) && has(file, 140, "DTED", 4)) return "damaged WebP: it is marked as DTED, too";
  return nullptr;
}

}  // namespace

// A chunk CgBI, before the header, marks what Apple's tools make of a PNG, which none but theirs
// read.
bool is_png(Bytes file) {
  return file.size() >= 33 && has(file, 0, "\x89PNG\r\n\x1a\n", 8) && !has(file, 12, "CgBI", 4);
}

bool is_tiff(Bytes file) {
  return file.size() >= 8 && (has(file, 0, "II*\0", 4) || has(file, 0, "MM\0*", 4));
}

bool is_webp(Bytes file) {
  return file.size() >= 30 && has(file, 0, "RIFF", 4) && has(file, 8, "WEBP", 4);
}

bool is_gif(Bytes file) {
  return file.size() >= 13 && (has(file, 0, "GIF87a", 6) || has(file, 0, "GIF89a", 6));
}

const char* heif_name(Bytes file) {
  if (file.size() < 16 || !has(file, 4, "ftyp", 4)) return nullptr;
  const size_t end = std::min<size_t>(file.size(), big_endian(file, 0, 4));
  bool is_heif = false;
  for (size_t at = 8; at + 4 <= end; at += at == 8 ? 8 : 4) {  // a version follows the first
    const std::string_view brand(reinterpret_cast<const char*>(file.data()) + at, 4);
    if (brand == "avif" || brand == "avis") return "AVIF";
    is_heif = is_heif || brand == "heic" || brand == "heix" || brand == "heim" || brand == "heis";
  }
  return is_heif ? "HEIC" : nullptr;
}

bool is_jpeg(Bytes file) {
  constexpr unsigned char of_jpeg_ls = 0xf7;
  return has(file, 0, "\xff\xd8\xff", 3) && (file.size() == 3 || file[3] != of_jpeg_ls);
}

bool is_known_format(Bytes file) {
  return is_png(file) || is_bmp(file) || is_webp(file) || is_tiff(file) || is_pnm(file);
}

const char* format_name(Bytes file) {
  if (is_jpeg(file)) return "JPEG";
  if (is_png(file)) return "PNG";
  if (is_bmp(file)) return "BMP";
  if (is_webp(file)) return "WebP";
  if (is_tiff(file)) return "TIFF";
  if (is_gif(file)) return "GIF";
  if (const char* name = heif_name(file)) return name;
  return is_pnm(file) ? "PNM" : "unknown";
}

Bytes heif_header(Bytes file) {
  for (size_t at = 0; at + 16 <= file.size();) {
    uint64_t length = big_endian(file, at, 4);
    if (length == 0) length = file.size();  // the last box
    if (length == 1) length = big_endian(file, at + 8, 8);
    if (length < 8) break;
    const Bytes box = file.subspan(at, std::min<uint64_t>(length, file.size() - at));
    if (has(box, 4, "meta", 4)) return box;
    at += box.size();
  }
  return {};
}

Extent extent_of(Bytes file) {
  const auto signed_at = [&](size_t at) {
    return std::abs(static_cast<int64_t>(static_cast<int32_t>(little_endian(file, at, 4))));
  };
  const auto whole = [](uint64_t value) { return static_cast<int64_t>(value); };
  if (is_png(file)) return {whole(big_endian(file, 16, 4)), whole(big_endian(file, 20, 4))};
  // OpenCV reads the longer form from 36 bytes on.
  if (is_bmp(file) && little_endian(file, 14, 4) >= 36) return {signed_at(18), signed_at(22)};
  if (is_bmp(file)) {
    return {whole(little_endian(file, 18, 2)), whole(little_endian(file, 20, 2))};
  }
  if (is_webp(file)) return webp_extent(file);
  if (is_tiff(file)) return tiff_extent(file);
  if (is_pnm(file)) return pnm_header(file).extent;
  if (is_gif(file)) return {whole(little_endian(file, 6, 2)), whole(little_endian(file, 8, 2))};
  if (heif_name(file) != nullptr) return heif_extent(file);
  return {};
}

// Of a tag that is there twice the larger value counts, as in tiff_extent().
TiffForm tiff_form(Bytes file) {
  TiffForm form;
  double strip_rows = 0;
  for_each_tag(file, [&](const auto& read, uint64_t tag, size_t at) {
    const auto value = static_cast<double>(tag_value(read, at));
    if (tag == 0x0115) form.channels = std::max(form.channels, value);
    if (tag == 0x0116) strip_rows = std::max(strip_rows, value);
    if (tag == 0x0142) form.tile_width = std::max(form.tile_width, value);
    if (tag == 0x0143) form.tile_rows = std::max(form.tile_rows, value);
    if (says_own_alpha(read, tag, at)) form.own_alpha = true;
    if (tag != 0x0102) return;
    // A value for each channel; what has no room in the tag is where it says.
    constexpr uint64_t max_channels = 4;
    const uint64_t length = value_bytes(read, at);
    const uint64_t count = std::min(read(at + 4, 4), max_channels);
    const size_t begin = read(at + 4, 4) * length <= 4 ? at + 8 : read(at + 8, 4);
    for (uint64_t i = 0; i < count && begin + length * (i + 1) <= file.size(); ++i) {
      form.bits = std::max(form.bits, static_cast<int>(read(begin + length * i, length)));
    }
  });
  if (strip_rows > 0) form.strip_rows = strip_rows;
  return form;
}

WebpForm webp_form(Bytes file) {
  WebpForm form;
  for (size_t at = 12; at + 8 <= file.size();) {
    if (has(file, at, "VP8X", 4) && at + 8 < file.size()) {
      form.alpha = (file[at + 8] & 0x10U) != 0;
      form.animated = (file[at + 8] & 0x02U) != 0;
    }
    if (has(file, at, "VP8 ", 4)) return form;
    if (has(file, at, "VP8L", 4)) {
      form.lossless = true;
      form.alpha = form.alpha || (at + 13 <= file.size() && (file[at + 12] & 0x10U) != 0);
      return form;
    }
    const uint64_t length = little_endian(file, at + 4, 4);
    at += 8 + length + length % 2;
  }
  return form;
}

int bits_of(Bytes file) {
  if (is_png(file)) return file[24];
  if (is_tiff(file)) return tiff_form(file).bits;
  if (is_pnm(file)) return pnm_header(file).greatest < 256 ? 8 : 16;
  return 8;
}

int colors_of(Bytes file) {
  if (is_png(file)) return file[25] == 0 || file[25] == 4 ? 1 : 3;
  if (is_pnm(file)) return file[1] == '3' || file[1] == '6' ? 3 : 1;
  return 0;
}

bool is_text(Bytes file) {
  return is_pnm(file) && file[1] <= '3';
}
bool is_text_without_end(Bytes file) {
  return is_text(file) && std::isspace(file.back()) == 0;
}

int64_t white_of_pnm(Bytes file) {
  return is_pnm(file) ? pnm_header(file).greatest : 0;
}

const char* damage_of(Bytes file, const char*& remark) {
  if (const char* damage = second_format(file)) return damage;
  if (is_png(file)) return png_damage(file, remark);
  if (is_bmp(file)) return bmp_damage(file, remark);
  if (is_webp(file)) return webp_damage(file, remark);
  if (is_pnm(file)) return pnm_damage(file);
  if (is_tiff(file)) return tiff_damage(file);
  return nullptr;
}

Bytes mended(Bytes file, std::vector<unsigned char>& room) {
  if (is_webp(file)) file = file.first(end_of_webp_pixels(file));
  room.assign(file.begin(), file.end());
  if (is_bmp(file)) room.resize(bmp_bytes(file).first, 0);
  // The size is even; a byte fills an odd one.
  if (is_webp(file)) {
    room.resize(room.size() + room.size() % 2, 0);
    for (size_t i = 0; i < 4; ++i) {
      room[4 + i] = static_cast<unsigned char>((room.size() - 8) >> (8 * i));
    }
  }
  return room;
}

Bytes without_notes(Bytes png, std::vector<unsigned char>& room) {
  constexpr size_t signature = 8, around = 12;  // length, name and check sum of a chunk
  room.assign(png.begin(), png.begin() + signature);
  for (size_t at = signature; at + around <= png.size();) {
    const size_t length = big_endian(png, at, 4) + around;
    const bool is_needed = std::isupper(png[at + 4]) != 0 || has(png, at + 4, "tRNS", 4) ||
                           has(png, at + 4, "eXIf", 4);
    const Bytes chunk = png.subspan(at, std::min(length, png.size() - at));
    if (is_needed) room.insert(room.end(), chunk.begin(), chunk.end());
    if (has(png, at + 4, "IEND", 4)) return room;
    at += chunk.size();
  }
  constexpr unsigned char end[] = {0, 0, 0, 0, 'I', 'E', 'N', 'D', 0xae, 0x42, 0x60, 0x82};
  room.insert(room.end(), std::begin(end), std::end(end));
  return room;
}

// OpenCV reads up to 8 bits as R,G,B,A from libtiff, more as they are stored. Gray is left as it
// is.
bool is_multiplied(Bytes tiff) {
  const TiffForm form = tiff_form(tiff);
  return form.own_alpha && form.bits <= 8 && form.channels >= 4;
}

Bytes with_colors_kept(Bytes tiff, std::vector<unsigned char>& room) {
  room.assign(tiff.begin(), tiff.end());
  for_each_tag(tiff, [&](const auto& read, uint64_t tag, size_t at) {
    if (!says_own_alpha(read, tag, at)) return;
    const size_t begin = at + 8, bytes = value_bytes(read, at);
    std::fill_n(room.begin() + static_cast<std::ptrdiff_t>(begin), bytes, 0);
    room[tiff[0] == 'I' ? begin : begin + bytes - 1] = multiplied;
  });
  return room;
}

namespace {

constexpr const char* exif_mark = "Exif\0";
constexpr size_t exif_mark_bytes = 6;

// Of the first chunk EXIF, if the header says that there is one, as libwebp and browsers read it.
// The chunk is a TIFF block; some programs write the mark of JPEG before it.
int webp_orientation(Bytes webp) {
  constexpr size_t around = 8;  // name and length of a chunk
  constexpr unsigned has_exif = 0x08;
  if (!has(webp, 12, "VP8X", 4) || (webp[20] & has_exif) == 0) return 1;
  const Bytes file = webp.first(std::min<size_t>(webp.size(), little_endian(webp, 4, 4) + around));
  for (size_t at = 12; at + around <= file.size();) {
    const uint64_t length = little_endian(file, at + 4, 4);
    if (length > file.size() - at - around) return 1;
    if (has(file, at, "EXIF", 4)) {
      const Bytes exif = file.subspan(at + around, length);
      const bool is_marked = has(exif, 0, exif_mark, exif_mark_bytes);
      return tiff_orientation(is_marked ? exif.subspan(exif_mark_bytes) : exif);
    }
    at += around + length + length % 2;
  }
  return 1;
}

}  // namespace

int exif_orientation(Bytes file) {
  if (is_webp(file)) return webp_orientation(file);
  if (!is_jpeg(file)) return 1;
  int orientation = 1;
  for_each_segment(file, [&](unsigned char marker, Bytes segment) {
    const bool found = marker == 0xe1 && has(segment, 0, exif_mark, exif_mark_bytes);
    if (found) orientation = tiff_orientation(segment.subspan(exif_mark_bytes));
    return !found;
  });
  return orientation;
}

int orientation_of(Bytes file) {
  if (is_tiff(file)) return tiff_orientation(file);
  if (!is_png(file)) return exif_orientation(file);
  constexpr size_t around = 12;  // length, name and check sum of a chunk
  for (size_t at = 8; at + around <= file.size();) {
    const uint64_t length = std::min<uint64_t>(big_endian(file, at, 4), file.size() - at - around);
    if (has(file, at + 4, "eXIf", 4)) return tiff_orientation(file.subspan(at + 8, length));
    at += length + around;
  }
  return 1;
}

// In compressed pixels a marker is a byte of 255 before any but 0, 255 and those of restarts.
int64_t jpeg_scans(Bytes jpeg) {
  int64_t scans = 0;
  size_t at = 2;
  while (true) {
    at = for_each_segment(
        jpeg, [](unsigned char, Bytes) { return true; }, at);
    if (!has(jpeg, at, "\xff\xda", 2)) return scans;
    ++scans;
    at += 2;
    const auto is_marker = [&](unsigned char c) {
      return c != 0 && c != 0xff && (c < 0xd0 || c > 0xd7);
    };
    for (; at + 1 < jpeg.size(); ++at) {
      const void* found = std::memchr(jpeg.data() + at, 0xff, jpeg.size() - at - 1);
      if (found == nullptr) return scans;
      at = static_cast<size_t>(static_cast<const unsigned char*>(found) - jpeg.data());
      if (is_marker(jpeg[at + 1])) break;
    }
  }
}

JpegForm jpeg_form(Bytes jpeg) {
  JpegForm form;
  for_each_segment(jpeg, [&](unsigned char marker, Bytes segment) {
    // The frame; of the same numbers are tables of codes, and a mark for extensions.
    const bool is_frame =
        marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
    if (!is_frame || segment.size() < 6) return true;
    form.extent = {static_cast<int64_t>(big_endian(segment, 3, 2)),
                   static_cast<int64_t>(big_endian(segment, 1, 2))};
    form.channels = segment[5];
    return false;
  });
  return form;
}

}  // namespace tandem::image_folder
