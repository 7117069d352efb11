// Rotating, shearing and shifting planes about their centre.
#pragma once

#include <array>

#include "datasets/picture/picture.h"

namespace tandem::picture {

// Maps pixels of the result to pixels of the source, both relative to the centre: (x, y) to
// (m[0] x + m[1] y + m[2], m[3] x + m[4] y + m[5]).
struct Affine {
  std::array<double, 6> m{1, 0, 0, 0, 1, 0};

  [[nodiscard]] bool is_identity() const { return m == std::array<double, 6>{1, 0, 0, 0, 1, 0}; }
  // First `next`, then this one, seen from the result.
  [[nodiscard]] Affine after(const Affine& next) const;
};
[[nodiscard]] Affine turned_by(double degrees);
[[nodiscard]] Affine sheared_by(double x, double y);
[[nodiscard]] Affine shifted_by(double x, double y);

// The size of source planes, centred on the result, that contain every pixel that apply() reads.
[[nodiscard]] Size source_size(const Affine& affine, const Size& result);

// `source` has source_size() and as many channels. Bilinear.
void apply(const Affine& affine, const Planes& source, const Planes& result);

}  // namespace tandem::picture
