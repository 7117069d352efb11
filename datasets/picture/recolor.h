// Colour jitter, and RandAugment (Cubuk et al., 2019) with torchvision's operations and ranges.
#pragma once

#include "datasets/picture/draws.h"
#include "datasets/picture/transform.h"

namespace tandem::picture {

// Whether the options ask for anything that changes colours.
[[nodiscard]] bool recolors(const TransformOptions& options);

// Whether RandAugment's operations, as many and as strong as asked for, can move pixels.
[[nodiscard]] bool may_move_pixels(const TransformOptions& options);

// What RandAugment draws for a sample that moves pixels: shears, shifts, turns. They are applied
// before what changes colours, whatever their order among the operations.
[[nodiscard]] Affine random_geometry(const TransformOptions& options, const Size& crop,
                                     uint64_t index, uint64_t seed);

// `planes` hold pixel - mean, and become (pixel - mean) * scale. Jitter: brightness, contrast,
// saturation, hue, in this order; then RandAugment's colours.
void recolor(const TransformOptions& options, Draws& draws, uint64_t index, uint64_t seed,
             const Planes& planes);

}  // namespace tandem::picture
