// From a picture to the input of a net: a region of it, resampled to the crop, perhaps mirrored,
// rotated and recolored, then (pixel - mean) * scale, as C,H,W floats. A pure function of the
// options, the picture, the sample's index and its seed.
#pragma once

#include <cstdint>
#include <optional>

#include "datasets/picture/affine.h"
#include "datasets/picture/picture.h"
#include "datasets/picture/resample.h"
#include "datasets/picture/transform_options.h"
#include "plugins/center_crop.h"

namespace tandem::picture {

// The random choices for one sample, made before its pixels are decoded.
struct Plan {
  Region region;          // of the picture, resampled to `size`
  Size size;              // the crop's; more where it is turned, less between bars
  int left = 0, top = 0;  // its place in the crop, where it is less
  bool mirrored = false;
  Filter filter = Filter::linear;
  Affine affine;
  // Where the picture is resized in bytes and nothing is random: the same as `region`.
  std::optional<center_crop::Middle> middle;
};
[[nodiscard]] Plan make_plan(const Size& whole, const TransformOptions& options, uint64_t index,
                             uint64_t seed);

// How many times (1, 2, 4 or 8) a picture may be shrunk while it is decoded, so that the plan's
// region still has at least as many pixels as are made of it. 1 where it is resized in bytes.
[[nodiscard]] int possible_shrink(const Plan& plan);

// What of a picture, shrunk so many times, transform() reads.
[[nodiscard]] Part needed_part(const Size& whole, int shrunk, const Plan& plan);

// `view` covers needed_part().
void transform(const View& view, const Size& whole, const Plan& plan,
               const TransformOptions& options, uint64_t index, uint64_t seed, float* pixels);
// The same as bytes, without mean and scale, rounded to the nearest, ties to even. Pixels added
// around or in the picture are the nearest byte of the mean.
void transform(const View& view, const Size& whole, const Plan& plan,
               const TransformOptions& options, uint64_t index, uint64_t seed,
               unsigned char* pixels);

// The last step of a transform: sets a random rectangle of some samples to the mean.
void erase(const TransformOptions& options, uint64_t index, uint64_t seed,
           const BytePlanes& result);

}  // namespace tandem::picture
