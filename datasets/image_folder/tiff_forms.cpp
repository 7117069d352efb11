#include "datasets/image_folder/tiff_forms.h"

#include <algorithm>

#include "datasets/image_folder/image_headers.h"
#include "datasets/image_folder/tiff_errors.h"
#include "datasets/image_folder/tiff_tags.h"
#include "plugins/sdk.h"

namespace tandem::image_folder {
namespace {

using picture::Bytes;

constexpr uint64_t tag_compression = 0x0103, tag_photometric = 0x0106, tag_planes = 0x011c,
                   tag_extra = 0x0152, tag_format = 0x0153;
constexpr uint64_t white_is_zero = 0, black_is_zero = 1, separated = 5;  // photometric
constexpr uint64_t signed_integers = 2, floats = 3, complex_integers = 5, complex_floats = 6;

struct Form {
  double bits = 1, channels = 1, tile_width = 0, tile_rows = 0;
  uint64_t compression = 1, photometric = black_is_zero, format = 1;
  bool planes = false, says_extra = false;
  uint64_t extra = 0;  // what the first channel beside the colors is
};

// The first of the values of a tag, which are in it or where it says; 0 behind the file's end.
template <class Read>
uint64_t first_value(Bytes tiff, const Read& read, size_t at) {
  const size_t bytes = value_bytes(read, at);
  const size_t begin = read(at + 4, 4) * bytes <= 4 ? at + 8 : read(at + 8, 4);
  return begin > tiff.size() || tiff.size() - begin < bytes ? 0 : read(begin, bytes);
}

Form form_of(Bytes tiff) {
  const TiffForm known = tiff_form(tiff);
  Form form;
  form.bits = known.bits;
  form.channels = known.channels;
  form.tile_width = known.tile_width;
  form.tile_rows = known.tile_rows;
  for_each_tag(tiff, [&](const auto& read, uint64_t tag, size_t at) {
    const uint64_t value = first_value(tiff, read, at);
    if (tag == tag_compression) form.compression = value;
    if (tag == tag_photometric) form.photometric = value;
    if (tag == tag_planes) form.planes = value == 2;
    if (tag == tag_format) form.format = value;
    if (tag != tag_extra) return;
    form.says_extra = true;
    form.extra = value;
  });
  return form;
}

}  // namespace

std::string misread_form(Bytes tiff) {
  const Form form = form_of(tiff);
  if (form.format == complex_integers || form.format == complex_floats) {
    return "a TIFF of complex numbers; store their amounts as floats of 32 bits";
  }
  if (form.format == signed_integers && form.bits <= 8) {
    return "a TIFF of signed integers of 8 bits; store them with 16 bits, or as floats";
  }
  if (form.format == floats && form.bits == 16) {
    return "a TIFF of floats of 16 bits; store them with 32 bits";
  }
  if (form.planes && form.channels > 1 && form.bits > 8) {
    return "a TIFF of over 8 bits a channel whose channels are stored one behind another; convert "
           "it: tiffcp -p contig FILE FILE.tif";
  }
  if (form.photometric == white_is_zero && form.bits > 8) {
    return "a TIFF of over 8 bits a channel in which 0 is white (MINISWHITE); store it with 0 as "
           "black";
  }
  return "";
}

std::string unread_codec(Bytes tiff) {
  constexpr struct {
    uint64_t number;
    const char* name;
  } codecs[] = {{33003, "JPEG 2000"}, {33005, "JPEG 2000"}, {34712, "JPEG 2000"},
                {50002, "JPEG XL"},   {52546, "JPEG XL"},   {34887, "LERC"},
                {50000, "Zstandard"}, {50001, "WebP"},      {34661, "JBIG"}};
  const uint64_t compression = form_of(tiff).compression;
  const std::optional<bool> is_known = decompresses_tiff(compression);
  if (is_known.value_or(false)) return "";
  for (const auto& [number, name] : codecs) {
    if (number != compression) continue;
    return sdk::text("a TIFF compressed as ", name, "; convert it: gdal_translate FILE FILE.tif");
  }
  if (!is_known) return "";
  return sdk::text("a TIFF of compression ", compression,
                   "; store it with another one, as by tiffcp -c lzw FILE FILE.tif of a libtiff "
                   "that has it");
}

std::string unread_form(Bytes tiff) {
  const Form form = form_of(tiff);
  const bool has_other_inks = form.photometric == separated && form.bits > 8;
  if (has_other_inks) return "a TIFF of inks with over 8 bits each; store it as colors";
  if (form.bits > 16 && form.format != floats) {
    return "a TIFF of integers of over 16 bits; store it with 16 bits, or as floats";
  }
  const bool are_usual = form.channels == 1 || form.channels == 3 || form.channels == 4;
  if (!are_usual || (form.format == floats && form.channels != 1 && form.channels != 3)) {
    return sdk::text("a TIFF of ", form.channels, " channels",
                     form.format == floats ? " of floats" : "",
                     "; store one or three of them, as by gdal_translate -b 1 -b 2 -b 3 FILE "
                     "FILE.tif");
  }
  if (form.format == floats && form.bits > 32 && form.channels > 1) {
    return sdk::text("a TIFF of floats of ", form.bits, " bits; store them with 32 bits");
  }
  constexpr int tile_unit = 32;
  const auto is_odd = [](double side) { return static_cast<int64_t>(side) % tile_unit != 0; };
  if (form.tile_width > 0 && (is_odd(form.tile_width) || is_odd(form.tile_rows))) {
    return sdk::text("a TIFF in tiles of ", form.tile_width, "x", form.tile_rows,
                     " pixels; convert it: tiffcp -s FILE FILE.tif");
  }
  return "";
}

bool has_gray_bands(Bytes tiff) {
  const Form form = form_of(tiff);
  return form.photometric == black_is_zero && form.bits <= 8 &&
         (form.channels == 3 || form.channels == 4);
}

Bytes with_bands_as_colors(Bytes tiff, std::vector<unsigned char>& room) {
  room.assign(tiff.begin(), tiff.end());
  const bool is_little = tiff[0] == 'I';
  const auto put = [&](size_t at, size_t bytes, uint64_t value) {
    for (size_t i = 0; i < bytes; ++i) {
      room[at + i] = static_cast<unsigned char>(value >> (8 * (is_little ? i : bytes - 1 - i)));
    }
  };
  const double channels = tiff_form(tiff).channels;
  for_each_tag(tiff, [&](const auto& read, uint64_t tag, size_t at) {
    constexpr uint64_t colors = 2;
    if (tag == tag_photometric) put(at + 8, value_bytes(read, at), colors);
    if (tag != tag_extra) return;
    put(at + 4, 4, channels > 3 ? 1 : 0);
    put(at + 8, 4, 0);
  });
  return room;
}

Beside beside_colors(Bytes tiff) {
  const Form form = form_of(tiff);
  const double shown = form.photometric == separated ? 4 : form.channels < 3 ? 1 : 3;
  if (form.channels <= shown) return Beside::nothing;
  const bool is_alpha = form.says_extra && form.extra != 0 && form.channels == shown + 1;
  return is_alpha ? Beside::alpha : Beside::other;
}

}  // namespace tandem::image_folder
