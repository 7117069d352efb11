// The part of a picture that a net sees when it does not train, and where it is in the net's input.
// Data sets and exported models cut out the same part: of `crop` that of torchvision's Resize and
// CenterCrop, of `squash` and `pad` that of timm's crop modes "squash" and "border".
#pragma once

#include <cstdint>

namespace tandem::center_crop {

// One axis: `whole` pixels become `resized` ones, and of these `count` from `begin` on are seen, at
// `place` of the input. What they do not fill of the input is the mean.
struct Part {
  int64_t whole = 0, resized = 0, begin = 0, count = 0, place = 0;

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

// An odd remainder is divided so that the crop begins at an even pixel, and that a bar at the end
// is the wider one.
inline Part part_of(int64_t whole, int64_t resized, int64_t crop) {
  const int64_t room = resized - crop;
  if (room < 0) return {whole, resized, 0, resized, -room / 2};
  return {whole, resized, room / 2 + (room % 4 == 3 ? 1 : 0), crop, 0};
}

// How a picture of another form fits the input.
enum class Fit {
  crop,    // its sides in proportion; what goes beyond the input is cut off
  squash,  // its sides out of proportion; all of it is seen
  pad      // its sides in proportion; all of it is seen, between bars
};

struct Wanted {
  int64_t width = 0, height = 0;  // of the input
  // crop: of the picture's shorter side, at least the longer one of the input; 0: as small as the
  // input allows. squash, pad: instead of the input's shorter side, and its other one in
  // proportion, before the middle is cropped; 0: the input's size.
  int64_t resize = 0;
  int64_t resize_width = 0;  // squash: the width, and `resize` is the height; 0: in proportion
  Fit fit = Fit::crop;
};

// `value` x `numerator` / `denominator`, to the nearest, and at least 1.
inline int64_t in_proportion(int64_t value, int64_t numerator, int64_t denominator) {
  const int64_t result = (2 * value * numerator + denominator) / (2 * denominator);
  return result < 1 ? 1 : result;
}

// Of a picture of width x height pixels (at least 1).
inline Middle middle_of(int64_t width, int64_t height, const Wanted& wanted) {
  const int64_t resize = wanted.resize;
  if (wanted.fit == Fit::crop) {
    const bool is_width_given =
        resize > 0 ? width <= height : wanted.width * height >= wanted.height * width;
    const int64_t side = resize > 0 ? resize : is_width_given ? wanted.width : wanted.height;
    const int64_t resized_width = is_width_given ? side : side * width / height;
    const int64_t resized_height = is_width_given ? side * height / width : side;
    return {part_of(width, resized_width, wanted.width),
            part_of(height, resized_height, wanted.height)};
  }
  const int64_t shorter = wanted.width < wanted.height ? wanted.width : wanted.height;
  int64_t to_width = wanted.width, to_height = wanted.height;
  if (resize > 0) {
    to_width = in_proportion(wanted.width, resize, shorter);
    to_height = in_proportion(wanted.height, resize, shorter);
  }
  if (wanted.fit == Fit::squash) {
    if (wanted.resize_width > 0) {
      to_width = wanted.resize_width;
      to_height = resize;
    }
  } else if (to_width * height <= to_height * width) {
    to_height = in_proportion(height, to_width, width);
  } else {
    to_width = in_proportion(width, to_height, height);
  }
  return {part_of(width, to_width, wanted.width), part_of(height, to_height, wanted.height)};
}

}  // namespace tandem::center_crop
