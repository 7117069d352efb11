// The middle of a picture that a net sees when it does not train. Data sets and exported models cut
// out the same part, which is that of torchvision's Resize and CenterCrop.
#pragma once

#include <cstdint>

namespace tandem::center_crop {

// One axis: `whole` pixels become `resized` ones, and of these `count` from `begin` on are cropped.
struct Part {
  int64_t whole = 0, resized = 0, begin = 0, count = 0;

  // The crop in pixels of the picture before it is resized.
  [[nodiscard]] double first() const { return before(begin); }
  [[nodiscard]] double length() const { return before(count); }

 private:
  [[nodiscard]] double before(int64_t pixels) const {
    return static_cast<double>(pixels * whole) / static_cast<double>(resized);
  }
};
struct Middle {
  Part across, down;
};

// An odd remainder is divided so that the crop begins at an even pixel.
inline Part part_of(int64_t whole, int64_t resized, int64_t crop) {
  const int64_t room = resized - crop;
  return {whole, resized, room / 2 + (room % 4 == 3 ? 1 : 0), crop};
}

// Of a picture of width x height pixels (at least 1): its shorter side becomes `shorter_side`,
// which is at least the longer side of the crop, the other one in proportion, rounded down. 0: the
// picture becomes as small as the crop allows.
inline Middle middle_of(int64_t width, int64_t height, int64_t crop_width, int64_t crop_height,
                        int64_t shorter_side) {
  const bool is_width_given =
      shorter_side > 0 ? width <= height : crop_width * height >= crop_height * width;
  const int64_t side = shorter_side > 0 ? shorter_side : is_width_given ? crop_width : crop_height;
  const int64_t resized_width = is_width_given ? side : side * width / height;
  const int64_t resized_height = is_width_given ? side * height / width : side;
  return {part_of(width, resized_width, crop_width), part_of(height, resized_height, crop_height)};
}

}  // namespace tandem::center_crop
