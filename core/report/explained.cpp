#include "core/report/explained.h"

#include <algorithm>
#include <cmath>

#include "core/report/captions.h"

namespace tandem {
namespace {

constexpr Color paper{255, 255, 255}, ink{30, 36, 44};

DrawnPicture enlarged(const DrawnPicture& picture, int64_t zoom) {
  DrawnPicture result = blank_picture(zoom * picture.width, zoom * picture.height, paper);
  for (int64_t y = 0; y < result.height; ++y) {
    for (int64_t x = 0; x < result.width; ++x) {
      std::copy_n(picture.pixels.begin() + 3 * (y / zoom * picture.width + x / zoom), 3,
                  result.pixels.begin() + 3 * (y * result.width + x));
    }
  }
  return result;
}

// The map over the part of the photo that the net saw.
DrawnPicture overlay(const DrawnPicture& photo, const ClassMap& map, const SeenPart& seen) {
  constexpr double opacity = 0.5, unseen = 0.25;
  constexpr int64_t most = 1024;  // places of the map on a side
  const ClassMap fine = smoothed(map, std::min(photo.width, most), std::min(photo.height, most));
  DrawnPicture result = photo;
  for (int64_t y = 0; y < photo.height; ++y) {
    const double v = ((double(y) + 0.5) / double(photo.height) - seen.top) / seen.height;
    for (int64_t x = 0; x < photo.width; ++x) {
      const double u = ((double(x) + 0.5) / double(photo.width) - seen.left) / seen.width;
      unsigned char* pixel = &result.pixels[size_t(3 * (y * photo.width + x))];
      if (u < 0 || u >= 1 || v < 0 || v >= 1) {
        for (int c = 0; c < 3; ++c) pixel[c] = static_cast<unsigned char>(unseen * pixel[c]);
        continue;
      }
      const auto column = int64_t(u * double(fine.width)), row = int64_t(v * double(fine.height));
      const auto color = map_color(double(fine.values[size_t(row * fine.width + column)]));
      for (int c = 0; c < 3; ++c) {
        pixel[c] = static_cast<unsigned char>(
            std::lround((1 - opacity) * pixel[c] + opacity * color[size_t(c)]));
      }
    }
  }
  return result;
}

}  // namespace

SeenPart seen_part(const center_crop::Middle& middle, int64_t width, int64_t height, int64_t across,
                   int64_t down) {
  const auto axis = [](const center_crop::Part& part, int64_t whole, int64_t input) {
    const double of_input = part.length() / double(part.count);  // pixels of the photo in each
    return std::pair((part.first() - double(part.place) * of_input) / double(whole),
                     double(input) * of_input / double(whole));
  };
  const auto [left, width_seen] = axis(middle.across, width, across);
  const auto [top, height_seen] = axis(middle.down, height, down);
  return {left, top, width_seen, height_seen};
}

DrawnPicture explained_picture(const DrawnPicture& picture, const ClassMap& map,
                               const SeenPart& seen, const std::string& caption) {
  constexpr int64_t readable_side = 224, letters_across = 48;
  const int64_t zoom =
      std::max<int64_t>(1, readable_side / std::max(picture.width, picture.height));
  const DrawnPicture photo = zoom > 1 ? enlarged(picture, zoom) : picture;
  const int64_t width = std::max(2 * photo.width, letters_across * letter_width);
  const int64_t size = std::max<int64_t>(1, width / (letters_across * letter_width));
  const int64_t margin = 4 * size, line = letter_height * size + margin;
  DrawnPicture result = blank_picture(width, photo.height + 2 * line + margin, paper);
  paste(result, 0, 0, photo);
  paste(result, photo.width, 0, overlay(photo, map, seen));
  const int64_t letters = (width - 2 * margin) / (letter_width * size);
  draw_text(result, margin, photo.height + margin, size, letters, caption, ink);
  // little [colors] much
  const int64_t at = photo.height + margin + line, bar = width / 4;
  const std::string little = "SPEAKS FOR IT: LITTLE ", much = " MUCH";
  draw_text(result, margin, at, size, letters, little, ink);
  const int64_t begin = margin + int64_t(little.size()) * letter_width * size;
  for (int64_t x = 0; x < bar; ++x) {
    Color color{};
    const auto value = map_color(double(x) / double(bar - 1));
    for (size_t c = 0; c < 3; ++c) color[c] = static_cast<unsigned char>(value[c]);
    fill(result, begin + x, at, 1, letter_height * size, color);
  }
  draw_text(result, begin + bar, at, size, letters, much, ink);
  return result;
}

}  // namespace tandem
