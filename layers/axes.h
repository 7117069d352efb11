// Caffe's axes on our N,C,H,W: 0 to 3, or counted from the end. How many axes a tensor would have
// in Caffe is not known here once its last extents are 1; a count from its end is then refused.
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

// The axis that `written` (-4 to 3) means in a tensor of that shape; `name` is the parameter's.
inline size_t canonical_axis(int64_t written, const sdk::Shape& shape, const char* name = "axis") {
  if (written < -4 || written > 3) {
    throw sdk::invalid(name, " ", written, " is none: an image has axes 0 to 3 (N, C, H, W)");
  }
  if (written >= 0) return static_cast<size_t>(written);
  if (shape.w == 1) {
    throw sdk::invalid(name, " ", written, " counts from the last axis, which the shape ",
                       sdk::text_of(shape), " does not tell: count from the first, which is 0");
  }
  return static_cast<size_t>(written + 4);
}

// The same, without the batch axis: devices have shares of it.
inline size_t sample_axis(int64_t written, const sdk::Shape& shape, const char* name = "axis") {
  const size_t axis = canonical_axis(written, shape, name);
  if (axis > 0) return axis;
  throw sdk::unsupported(name, " ", written,
                         " is the batch, which is divided over the devices: only axes 1 to 3 are "
                         "supported");
}

// `newer` is the parameter of today, `older` what it was called once.
inline int64_t renamed_axis(const sdk::Attributes& attributes, const char* newer,
                            const char* older) {
  if (!attributes.is_set(older)) return attributes.integer(newer);
  if (attributes.is_set(newer)) {
    throw sdk::invalid("write either ", newer, " or ", older, ", its old name, not both");
  }
  return attributes.integer(older);
}

}  // namespace tandem::layers
