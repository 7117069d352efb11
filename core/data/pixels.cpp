#include "core/data/pixels.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/text/strings.h"
#include "plugins/pixels.h"

namespace tandem {

void to_floats(const uint8_t* pixels, const Shape& shape, const PixelScale& scale, float* target) {
  const int64_t plane = shape.h * shape.w;
  for (int64_t i = 0; i < shape.n * shape.c; ++i) {
    const float mean = scale.means[size_t(i % shape.c)];
    for (int64_t k = 0; k < plane; ++k, ++pixels, ++target) {
      *target = pixels::value_of(*pixels, mean, scale.scale);
    }
  }
}

void fill_with_means(const Shape& shape, const PixelScale& scale, uint8_t* pixels) {
  const int64_t plane = shape.h * shape.w;
  for (int64_t i = 0; i < shape.n * shape.c; ++i) {
    const float mean = std::clamp(scale.means[size_t(i % shape.c)], 0.0F, 255.0F);
    pixels = std::fill_n(pixels, plane, static_cast<uint8_t>(std::nearbyint(mean)));
  }
}

void require_pixels_word(const std::string& word) {
  const std::vector<std::string> words{"auto", "bytes", "floats"};
  if (std::find(words.begin(), words.end(), word) != words.end()) return;
  throw error("--pixels '{}': there are auto, bytes and floats{}", word, did_you_mean(word, words));
}

}  // namespace tandem
