// From a picture to what a net reads: a region of it, resampled to the crop, perhaps mirrored,
// turned and recoloured, then (pixel - mean) * scale, as C,H,W floats. A pure function of the
// options, the picture, the sample's index and its seed.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "datasets/picture/affine.h"
#include "datasets/picture/picture.h"
#include "datasets/picture/resample.h"
#include "plugins/sdk.h"

namespace tandem::picture {

struct TransformOptions {
  int64_t channels = 3, height = 0, width = 0;
  int64_t resize = 0;  // the shorter side before cropping; 0: the largest region of the crop's form
  bool rgb = false;
  std::array<float, 3> mean{};  // of B, G, R; or of gray
  float scale = 1;
  bool random = false;  // training: what follows happens; else the centre is taken as it is
  bool mirror = false;  // half of the samples
  int pad = 0;          // pixels of the mean around the picture, once it has its size
  double least_area = 0, most_area = 0;  // random resized crop: share of the picture; 0: none
  double least_ratio = 0.75, most_ratio = 4.0 / 3;  // and width / height
  double rotation = 0;                              // up to so many degrees either way
  std::array<double, 4> jitter{};  // brightness, contrast, saturation (0.4: 0.6 to 1.4), hue
  int random_operations = 0;       // RandAugment: how many of its operations,
  double magnitude = 0;            // and how strong, 0 to 30
  double erase = 0;                // share of the samples that lose a rectangle
};

// What the data sets of pictures declare, and what was asked for. Throws a Refusal for values that
// do not fit each other or the net. Height and width are 0 where neither net nor `resize` says.
[[nodiscard]] std::vector<sdk::Parameter> transform_parameters(const char* block);
[[nodiscard]] TransformOptions read_transform(const tandem_dataset_request& request,
                                              const sdk::Attributes& attributes);

// What was drawn for one sample before its pixels are known.
struct Plan {
  Region region;  // of the picture, resampled to `size`
  Size size;      // the crop's, or more where it is turned
  bool mirrored = false;
  Affine affine;
};
[[nodiscard]] Plan make_plan(const Size& whole, const TransformOptions& options, uint64_t index,
                             uint64_t seed);

// How many times (1, 2, 4 or 8) a picture may be shrunk while it is decoded, so that the plan's
// region still has at least as many pixels as are made of it.
[[nodiscard]] int possible_shrink(const Plan& plan);

// `view` covers needed_part() of the plan's region and size.
void transform(const View& view, const Size& whole, const Plan& plan,
               const TransformOptions& options, uint64_t index, uint64_t seed, float* pixels);
// The same as bytes, neither mean nor scale applied: rounded to the nearest, ties to even. What is
// put around or into the picture is the mean's nearest byte.
void transform(const View& view, const Size& whole, const Plan& plan,
               const TransformOptions& options, uint64_t index, uint64_t seed,
               unsigned char* pixels);

// The last of it: the rectangle that some samples lose.
void erase(const TransformOptions& options, uint64_t index, uint64_t seed,
           const BytePlanes& result);

}  // namespace tandem::picture
