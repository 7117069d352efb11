#include "datasets/image_folder/remarks.h"

#include <algorithm>
#include <string_view>

#include "datasets/image_folder/image_headers.h"
#include "datasets/image_folder/tiff_forms.h"
#include "datasets/image_folder/tiff_tags.h"

namespace tandem::image_folder {
namespace {

using namespace std::string_view_literals;
using picture::big_endian;
using picture::Bytes;
using picture::has;
using picture::little_endian;

struct Facts {
  bool alpha = false, profile = false, inks = false;
  bool other_channels = false;  // that are dropped and are no alpha
  bool several = false;         // pictures
};

// Most profiles only say what is true without them.
bool is_other_profile(Bytes profile) {
  const std::string_view text(reinterpret_cast<const char*>(profile.data()), profile.size());
  return text.find("sRGB"sv) == std::string_view::npos &&
         text.find("s\0R\0G\0B"sv) == std::string_view::npos;
}

Facts facts_of_jpeg(Bytes jpeg) {
  Facts facts;
  facts.inks = jpeg_form(jpeg).channels == 4;
  for_each_segment(jpeg, [&](unsigned char marker, Bytes segment) {
    const bool has_profile = marker == 0xe2 && has(segment, 0, "ICC_PROFILE", 12);
    if (has_profile) facts.profile = is_other_profile(segment);
    return !has_profile;
  });
  return facts;
}

Facts facts_of_png(Bytes png) {
  Facts facts;
  facts.alpha = png[25] == 4 || png[25] == 6;
  for (size_t at = 8; at + 12 <= png.size() && !has(png, at + 4, "IDAT", 4);) {
    const uint64_t length = std::min<uint64_t>(big_endian(png, at, 4), png.size() - at - 12);
    if (has(png, at + 4, "tRNS", 4)) facts.alpha = true;
    if (has(png, at + 4, "acTL", 4)) facts.several = true;
    // The profile is compressed; its name is not.
    if (has(png, at + 4, "iCCP", 4)) facts.profile = is_other_profile(png.subspan(at + 8, length));
    at += length + 12;
  }
  return facts;
}

Facts facts_of_webp(Bytes webp) {
  Facts facts;
  facts.alpha = webp_form(webp).alpha;
  for (size_t at = 12; at + 8 <= webp.size();) {
    const uint64_t length =
        std::min<uint64_t>(little_endian(webp, at + 4, 4), webp.size() - at - 8);
    if (has(webp, at, "ICCP", 4)) facts.profile = is_other_profile(webp.subspan(at + 8, length));
    at += 8 + length + length % 2;
  }
  return facts;
}

Facts facts_of_tiff(Bytes tiff) {
  constexpr uint64_t photometric = 0x0106, icc = 0x8773, separated = 5;
  Facts facts;
  facts.several = has_second_directory(tiff);
  facts.alpha = beside_colors(tiff) == Beside::alpha;
  facts.other_channels = beside_colors(tiff) == Beside::other;
  for_each_tag(tiff, [&](const auto& read, uint64_t tag, size_t at) {
    if (tag == photometric) facts.inks = tag_value(read, at) == separated;
    if (tag != icc) return;
    const uint64_t length = read(at + 4, 4), begin = read(at + 8, 4);
    if (begin > tiff.size() || length > tiff.size() - begin) return;
    facts.profile = is_other_profile(tiff.subspan(begin, length));
  });
  return facts;
}

// The end of the blocks that begin at `at`, each with its length before it.
size_t end_of_blocks(Bytes gif, size_t at) {
  while (at < gif.size() && gif[at] != 0) at += 1 + size_t{gif[at]};
  return at + 1;
}

Facts facts_of_gif(Bytes gif) {
  constexpr unsigned char extension = 0x21, picture = 0x2c;
  const auto colors = [&](unsigned char flags) {
    return (flags & 0x80U) == 0 ? size_t{0} : size_t{3} << ((flags & 7U) + 1U);
  };
  int pictures = 0;
  size_t at = gif.size() < 13 ? gif.size() : 13 + colors(gif[10]);
  while (pictures < 2 && at + 10 < gif.size()) {
    if (gif[at] == extension) {
      at = end_of_blocks(gif, at + 2);
    } else if (gif[at] == picture) {
      ++pictures;
      at = end_of_blocks(gif, at + 11 + colors(gif[at + 9]));
    } else {
      break;
    }
  }
  Facts facts;
  facts.several = pictures > 1;
  return facts;
}

}  // namespace

std::string remarks_of(Bytes file) {
  const Facts facts = is_jpeg(file)   ? facts_of_jpeg(file)
                      : is_png(file)  ? facts_of_png(file)
                      : is_webp(file) ? facts_of_webp(file)
                      : is_tiff(file) ? facts_of_tiff(file)
                      : is_gif(file)  ? facts_of_gif(file)
                                      : Facts{};
  std::string text;
  const auto add = [&](bool is_so, const char* remark) {
    if (is_so) text += (text.empty() ? "" : "\n") + std::string(remark);
  };
  add(orientation_of(file) != 1, "turned upright, as its EXIF data or its tag say");
  add(facts.several, "the first of several pictures is read");
  add(facts.alpha, "alpha is dropped; colors stay as they are stored");
  add(facts.other_channels, "channels beside gray or the first three are dropped");
  add(facts.profile, "a color profile other than sRGB is not applied");
  add(facts.inks, "four inks (CMYK) become three colors");
  if (!is_jpeg(file) && bits_of(file) > 8) {
    add(true, bits_of(file) > 16 ? "over 16 bits a channel become 8 (white: the option 'white')"
                                 : "16 bits a channel become 8 (white: the option 'white')");
  }
  return text;
}

}  // namespace tandem::image_folder
