// Color jitter; RandAugment (Cubuk et al., 2019) with torchvision's operations and ranges, and
// TrivialAugment (Müller and Hutter, 2021) with the same ones.
#pragma once

#include <cstdint>

#include "datasets/picture/affine.h"
#include "datasets/picture/draws.h"
#include "datasets/picture/picture.h"
#include "datasets/picture/transform_options.h"

namespace tandem::picture {

// Whether any option changes colors.
[[nodiscard]] bool recolors(const TransformOptions& options);

// Whether RandAugment is on and strong enough to move pixels, or TrivialAugment is on.
[[nodiscard]] bool may_move_pixels(const TransformOptions& options);

// The operations of both that move pixels of a sample: shears, shifts, rotations. They are
// applied before those that change colors, whatever their order.
[[nodiscard]] Affine random_geometry(const TransformOptions& options, const Size& crop,
                                     uint64_t index, uint64_t seed);

// `planes` hold pixel - mean, and become (pixel - mean) * scale. Jitter: brightness, contrast,
// saturation, hue, in this order; then the colors of both.
void recolor(const TransformOptions& options, Draws& draws, uint64_t index, uint64_t seed,
             const Planes& planes);

}  // namespace tandem::picture
