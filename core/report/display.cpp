#include "core/report/display.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/text/strings.h"
#include "core/report/page/png.h"

namespace tandem {

Display::Display(const std::map<std::string, std::string>& parameters, const Shape& sample)
    : sample_(sample) {
  if (sample.c != 1 && sample.c != 3) {
    throw error("samples have {} channels; 1 or 3 can be drawn", sample.c);
  }
  const auto text = [&](const char* name) {
    const auto found = parameters.find(name);
    return found == parameters.end() ? std::string() : found->second;
  };
  (void)parse_number(text("scale"), &scale_);
  for (const std::string& part : split(text("mean"), ',')) {
    double mean = 0;
    if (parse_number(part, &mean)) means_.push_back(mean);
  }
  if (means_.size() != 3 && means_.size() > 1) means_.erase(means_.begin() + 1, means_.end());
  rgb_ = text("color") == "rgb";
}

std::array<unsigned char, 3> Display::color(const float* pixels, int64_t at) const {
  const int64_t plane = sample_.h * sample_.w;
  std::array<unsigned char, 3> result{};
  for (int64_t c = 0; c < 3; ++c) {
    const int64_t bgr = sample_.c == 3 ? 2 - c : 0;
    const int64_t stored = sample_.c == 3 && rgb_ ? c : bgr;
    const double mean = means_.empty() ? 0 : means_.size() == 1 ? means_[0] : means_[size_t(bgr)];
    const double value = pixels[stored * plane + at] / (scale_ == 0 ? 1 : scale_) + mean;
    result[size_t(c)] = static_cast<unsigned char>(std::lround(std::clamp(value, 0.0, 255.0)));
  }
  return result;
}

DrawnPicture Display::picture(const float* pixels) const {
  DrawnPicture picture{sample_.w, sample_.h, {}};
  picture.pixels.reserve(size_t(3 * sample_.h * sample_.w));
  for (int64_t at = 0; at < sample_.h * sample_.w; ++at) {
    const auto one = color(pixels, at);
    picture.pixels.insert(picture.pixels.end(), one.begin(), one.end());
  }
  return picture;
}

DrawnPicture shrunk(const DrawnPicture& picture, int64_t side) {
  const int64_t longest = std::max(picture.width, picture.height);
  if (longest <= side) return picture;
  DrawnPicture small{std::max<int64_t>(1, picture.width * side / longest),
                     std::max<int64_t>(1, picture.height * side / longest),
                     {}};
  for (int64_t y = 0; y < small.height; ++y) {
    const int64_t top = y * picture.height / small.height;
    const int64_t bottom = (y + 1) * picture.height / small.height;
    for (int64_t x = 0; x < small.width; ++x) {
      const int64_t left = x * picture.width / small.width;
      const int64_t right = (x + 1) * picture.width / small.width;
      for (int64_t c = 0; c < 3; ++c) {
        int64_t sum = 0;
        for (int64_t v = top; v < bottom; ++v) {
          for (int64_t u = left; u < right; ++u) {
            sum += picture.pixels[size_t(3 * (v * picture.width + u) + c)];
          }
        }
        const int64_t count = (bottom - top) * (right - left);
        small.pixels.push_back(static_cast<unsigned char>((sum + count / 2) / count));
      }
    }
  }
  return small;
}

std::string base64_png(const DrawnPicture& picture) {
  return to_base64(to_png(picture.width, picture.height, picture.pixels));
}

}  // namespace tandem
