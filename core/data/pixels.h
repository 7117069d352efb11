// How the images of a batch come to a net: as floats, or as bytes, a quarter of them, which become
// floats where the net is. A run's choice is whether pixels are rounded to bytes; where they become
// floats then changes no bit.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "core/base/shape.h"

namespace tandem {

enum class PixelForm {
  floats,   // as the data set gives them
  rounded,  // bytes, made floats as the batch is filled
  bytes     // bytes in the batch, made floats on the devices
};

// What a byte becomes: (byte - means[channel]) * scale.
struct PixelScale {
  std::array<float, 4> means{};
  float scale = 1;
  bool operator==(const PixelScale&) const = default;
};

// Bytes that a pixel takes in a batch.
[[nodiscard]] constexpr int64_t pixel_bytes(PixelForm form) {
  return form == PixelForm::bytes ? 1 : 4;
}

// `shape` of all pictures together.
void to_floats(const uint8_t* pixels, const Shape& shape, const PixelScale& scale, float* target);
// A picture of the bytes that come next to zeros: what a row without a sample holds.
void fill_with_means(const Shape& shape, const PixelScale& scale, uint8_t* pixels);

// --pixels: auto, bytes or floats. Error for another word.
void require_pixels_word(const std::string& word);

}  // namespace tandem
