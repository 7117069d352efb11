// The form of the images in a batch: floats, or bytes that become floats on the devices and take a
// quarter of the memory. A run chooses whether pixels are rounded to bytes; where they become
// floats then changes no bit.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "core/base/numbers/shape.h"

namespace tandem {

enum class PixelForm {
  floats,   // as the data set gives them
  rounded,  // to bytes, converted to floats as the batch is filled
  bytes     // in the batch, converted to floats on the devices
};

// The value of a byte: (byte - means[channel]) * scale.
struct PixelScale {
  std::array<float, 4> means{};
  float scale = 1;
  bool operator==(const PixelScale&) const = default;
};

// Bytes that a pixel takes in a batch.
[[nodiscard]] constexpr int64_t pixel_bytes(PixelForm form) {
  return form == PixelForm::bytes ? 1 : 4;
}

// `shape`: of all pictures together.
void to_floats(const uint8_t* pixels, const Shape& shape, const PixelScale& scale, float* target);
// Fills a row without a sample with the bytes whose values are nearest to zero.
void fill_with_means(const Shape& shape, const PixelScale& scale, uint8_t* pixels);

// --pixels: auto, bytes or floats. Error for another word.
void require_pixels_word(const std::string& word);

}  // namespace tandem
