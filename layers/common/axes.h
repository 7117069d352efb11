// Caffe's axes for our N,C,H,W: 0 to 3, or negative to count from the last. If the last extents are
// 1, the number of axes that the tensor would have in Caffe is not known, and counting from the
// last axis is refused.
#pragma once

#include <array>
#include <cstdint>

#include "plugins/sdk.h"

namespace tandem::layers {

using Extents = std::array<int64_t, 4>;

inline Extents extents_of(const sdk::Shape& s) {
  return {s.n, s.c, s.h, s.w};
}
inline sdk::Shape shape_of(const Extents& e) {
  return {e[0], e[1], e[2], e[3]};
}

// The axis that `written` (-4 to 3) refers to in a tensor of that shape. `name`: of the parameter,
// for messages.
inline size_t canonical_axis(int64_t written, const sdk::Shape& shape, const char* name = "axis") {
  if (written < -4 || written > 3) {
    throw sdk::invalid(name, " ", written,
                       " does not exist: an image has axes 0 to 3 (N, C, H, W)");
  }
  if (written >= 0) return static_cast<size_t>(written);
  if (shape.w == 1) {
    throw sdk::invalid(name, " ", written,
                       " counts from the last axis, which is not defined for the shape ",
                       sdk::text_of(shape), ": count from the first axis, which is 0");
  }
  return static_cast<size_t>(written + 4);
}

// The same, but refuses the batch axis, whose rows are divided over the devices.
inline size_t sample_axis(int64_t written, const sdk::Shape& shape, const char* name = "axis") {
  const size_t axis = canonical_axis(written, shape, name);
  if (axis > 0) return axis;
  throw sdk::unsupported(name, " ", written,
                         " is the batch, which is divided over the devices: only axes 1 to 3 are "
                         "supported");
}

// `older` is the former name of the parameter `newer`.
inline int64_t renamed_axis(const sdk::Attributes& attributes, const char* newer,
                            const char* older) {
  if (!attributes.is_set(older)) return attributes.integer(newer);
  if (attributes.is_set(newer)) {
    throw sdk::invalid("write either ", newer, " or ", older, ", its former name, not both");
  }
  return attributes.integer(older);
}

}  // namespace tandem::layers
