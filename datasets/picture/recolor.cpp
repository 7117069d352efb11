#include "datasets/picture/recolor.h"

#include <cmath>

#include "datasets/picture/colors.h"

namespace tandem::picture {
namespace {

constexpr double strongest = 30;

enum class Operation {
  identity,
  shear_x,
  shear_y,
  shift_x,
  shift_y,
  turn,
  brightness,
  saturation,
  contrast,
  sharpness,
  posterize,
  solarize,
  stretch,
  equalize,
  count
};

struct Drawn {
  Operation operation;
  double sign, strength;  // from 0 to 1
};

// Draws the same operations for geometry and colors; each uses its own. Of a share of the samples
// TrivialAugment draws one operation of any strength in place of RandAugment's.
template <class Function>
void for_each_drawn(const TransformOptions& options, uint64_t index, uint64_t seed,
                    Function&& function) {
  Draws draws(seed ^ 0x52616e6441756721U, index);
  const bool is_trivial = options.trivial > 0 && draws.chance(options.trivial);
  const int count = is_trivial ? 1 : options.random_operations;
  for (int i = 0; i < count; ++i) {
    const auto operation = static_cast<Operation>(draws.below(static_cast<int>(Operation::count)));
    const double sign = draws.chance(0.5) ? -1.0 : 1.0;
    const double strength = is_trivial ? draws.between(0, 1) : options.magnitude / strongest;
    function(Drawn{operation, sign, strength});
  }
}

void add_mean(const TransformOptions& options, const Planes& planes, float sign, float scale) {
  const int channels = planes.channels;
  const std::ptrdiff_t count = static_cast<std::ptrdiff_t>(planes.height) * planes.width;
  for (int c = 0; c < channels; ++c) {
    const int source = options.rgb ? channels - 1 - c : c;
    const float mean = sign * options.mean[static_cast<size_t>(source)];
    float* plane = planes.plane(c);
    for (std::ptrdiff_t i = 0; i < count; ++i) plane[i] = (plane[i] + mean) * scale;
  }
}

void jitter(const TransformOptions& options, Draws& draws, const Planes& planes) {
  const auto& [brightness, contrast, saturation, hue] = options.jitter;
  const auto factor = [&](double reach) {
    return draws.between(std::max(0.0, 1 - reach), 1 + reach);
  };
  const double b = factor(brightness), c = factor(contrast), s = factor(saturation);
  const double h = draws.between(-hue, hue);
  if (brightness > 0) change_brightness(planes, b);
  if (contrast > 0) change_contrast(planes, options.rgb, c);
  if (saturation > 0) change_saturation(planes, options.rgb, s);
  if (hue > 0) turn_hue(planes, options.rgb, h);
}

void recolor_one(const Drawn& drawn, bool rgb, const Planes& planes) {
  const double strength = drawn.strength, factor = 1 + 0.9 * strength * drawn.sign;
  switch (drawn.operation) {
    case Operation::brightness:
      change_brightness(planes, factor);
      break;
    case Operation::saturation:
      change_saturation(planes, rgb, factor);
      break;
    case Operation::contrast:
      change_contrast(planes, rgb, factor);
      break;
    case Operation::sharpness:
      change_sharpness(planes, factor);
      break;
    case Operation::posterize:
      posterize(planes, 8 - static_cast<int>(std::lround(4 * strength)));
      break;
    case Operation::solarize:
      solarize(planes, 255 * (1 - strength));
      break;
    case Operation::stretch:
      stretch_contrast(planes);
      break;
    case Operation::equalize:
      equalize(planes);
      break;
    default:
      break;
  }
}

}  // namespace

bool recolors(const TransformOptions& options) {
  const auto& j = options.jitter;
  return options.random_operations > 0 || options.trivial > 0 || j[0] > 0 || j[1] > 0 || j[2] > 0 ||
         j[3] > 0;
}

bool may_move_pixels(const TransformOptions& options) {
  return options.trivial > 0 || (options.random_operations > 0 && options.magnitude > 0);
}

Affine random_geometry(const TransformOptions& options, const Size& crop, uint64_t index,
                       uint64_t seed) {
  Affine affine;
  for_each_drawn(options, index, seed, [&](const Drawn& drawn) {
    const double strength = drawn.strength;
    const double shear = 0.3 * strength * drawn.sign;
    const double shift = 150.0 / 331 * strength * drawn.sign;
    switch (drawn.operation) {
      case Operation::shear_x:
        affine = affine.after(sheared_by(shear, 0));
        break;
      case Operation::shear_y:
        affine = affine.after(sheared_by(0, shear));
        break;
      case Operation::shift_x:
        affine = affine.after(shifted_by(shift * crop.width, 0));
        break;
      case Operation::shift_y:
        affine = affine.after(shifted_by(0, shift * crop.height));
        break;
      case Operation::turn:
        affine = affine.after(turned_by(30 * strength * drawn.sign));
        break;
      default:
        break;
    }
  });
  return affine;
}

void recolor(const TransformOptions& options, Draws& draws, uint64_t index, uint64_t seed,
             const Planes& planes) {
  add_mean(options, planes, 1, 1);
  jitter(options, draws, planes);
  for_each_drawn(options, index, seed,
                 [&](const Drawn& drawn) { recolor_one(drawn, options.rgb, planes); });
  add_mean(options, planes, -1, options.scale);
}

}  // namespace tandem::picture
