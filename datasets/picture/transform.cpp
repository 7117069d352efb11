#include "datasets/picture/transform.h"

#include <algorithm>
#include <cmath>

#include "datasets/picture/byte_form.h"
#include "datasets/picture/draws.h"
#include "datasets/picture/recolor.h"
#include "plugins/center_crop.h"

namespace tandem::picture {
namespace {

constexpr int crop_attempts = 10;

Size crop_of(const TransformOptions& options) {
  return {static_cast<int>(options.width), static_cast<int>(options.height)};
}

// Where a region of `length` begins within `whole`, given a random number.
double place(double whole, double length, uint32_t bits) {
  const double room = whole - length;
  const auto places = static_cast<uint64_t>(std::llround(std::floor(room))) + 1;
  return static_cast<double>(static_cast<uint64_t>(bits) * places >> 32);
}

// Of testing and prediction. Resizing the whole picture first would give the same pixels and waste
// work.
void take_middle(const Size& whole, const TransformOptions& options, Plan& plan) {
  center_crop::Middle middle = center_crop::middle_of(whole.width, whole.height, options.wanted());
  const auto move = [](center_crop::Part& part, int where) {
    if (where != 0) part.begin = where < 0 ? 0 : part.resized - part.count;
  };
  move(middle.across, options.across);
  move(middle.down, options.down);
  plan.mirrored = options.mirrored;
  const auto& [across, down] = middle;
  plan.region = {across.first(), down.first(), across.length(), down.length()};
  plan.size = {static_cast<int>(across.count), static_cast<int>(down.count)};
  plan.left = static_cast<int>(across.place);
  plan.top = static_cast<int>(down.place);
  if (options.in_bytes) plan.middle = middle;
}

// The part of an axis that becomes the `crop` pixels of the input, in pixels of the picture: at
// random within the picture and `pad` pixels around it, or all of it between bars.
std::pair<double, double> fitted(const center_crop::Part& part, int64_t crop, int pad,
                                 uint32_t bits) {
  const double scale = static_cast<double>(part.resized) / static_cast<double>(part.whole);
  const double length = static_cast<double>(crop) / scale, around = pad / scale;
  const auto whole = static_cast<double>(part.whole);
  if (length > whole + 2 * around) return {(whole - length) / 2, length};
  return {place(whole + 2 * around, length, bits) - around, length};
}

// The region of the picture that becomes the crop; of whole pixels where it keeps its proportions.
Region plain_region(const Size& whole, const TransformOptions& options, uint32_t across,
                    uint32_t down) {
  if (options.fit != center_crop::Fit::crop) {
    const auto middle = center_crop::middle_of(whole.width, whole.height, options.wanted());
    const auto [x, w] = fitted(middle.across, options.width, options.pad, across);
    const auto [y, h] = fitted(middle.down, options.height, options.pad, down);
    return {x, y, w, h};
  }
  const double columns = whole.width, rows = whole.height;
  const auto width = static_cast<double>(options.width);
  const auto height = static_cast<double>(options.height);
  const double scale = options.resize > 0
                           ? static_cast<double>(options.resize) / std::min(columns, rows)
                           : std::max(width / columns, height / rows);
  const double pad = options.pad / scale;
  const double w = std::clamp(std::round(width / scale), 1.0, columns + 2 * pad);
  const double h = std::clamp(std::round(height / scale), 1.0, rows + 2 * pad);
  return {place(columns + 2 * pad, w, across) - pad, place(rows + 2 * pad, h, down) - pad, w, h};
}

// Inception's crop: any part of the picture within the limits of area and form, if one fits.
Region resized_region(const Size& whole, const TransformOptions& options, Draws& draws) {
  const double columns = whole.width, rows = whole.height;
  for (int i = 0; i < crop_attempts; ++i) {
    const double area = columns * rows * draws.between(options.min_area, options.max_area);
    const double ratio =
        std::exp(draws.between(std::log(options.min_ratio), std::log(options.max_ratio)));
    const double w = std::round(std::sqrt(area * ratio)), h = std::round(std::sqrt(area / ratio));
    const uint32_t across = draws.bits(), down = draws.bits();
    if (w < 1 || h < 1 || w > columns || h > rows) continue;
    return {place(columns, w, across), place(rows, h, down), w, h};
  }
  const double ratio = std::clamp(columns / rows, options.min_ratio, options.max_ratio);
  const double w = std::max(1.0, std::round(std::min(columns, rows * ratio)));
  const double h = std::max(1.0, std::round(std::min(rows, columns / ratio)));
  return {std::floor((columns - w) / 2), std::floor((rows - h) / 2), w, h};
}

// `value(plane)`: of an erased pixel.
template <class Pixel, class Value>
void erase_rectangle(const PlanesOf<Pixel>& planes, Draws& draws, const Value& value) {
  const double columns = planes.width, rows = planes.height;
  for (int i = 0; i < crop_attempts; ++i) {
    const double area = columns * rows * draws.between(0.02, 0.33);
    const double ratio = std::exp(draws.between(std::log(0.3), std::log(1 / 0.3)));
    const auto w = static_cast<int>(std::lround(std::sqrt(area * ratio)));
    const auto h = static_cast<int>(std::lround(std::sqrt(area / ratio)));
    const uint32_t across = draws.bits(), down = draws.bits();
    if (w < 1 || h < 1 || w > planes.width || h > planes.height) continue;
    const auto x = static_cast<int>(place(columns, w, across));
    const auto y = static_cast<int>(place(rows, h, down));
    for (int c = 0; c < planes.channels; ++c) {
      for (int row = y; row < y + h; ++row) {
        std::fill_n(planes.plane(c) + static_cast<std::ptrdiff_t>(row) * planes.width + x, w,
                    value(c));
      }
    }
    return;
  }
}

// Enlarges the region to that of `size` pixels around the crop's centre.
void grow(Plan& plan, const Size& crop) {
  plan.size = source_size(plan.affine, crop);
  const double across = static_cast<double>(plan.size.width) / crop.width;
  const double down = static_cast<double>(plan.size.height) / crop.height;
  Region& r = plan.region;
  r = {r.x + r.width / 2 * (1 - across), r.y + r.height / 2 * (1 - down), r.width * across,
       r.height * down};
}

// Each purpose has its own draws, so that one option does not change those of another.
enum Purpose : uint64_t { placing = 0, turning = 1, recoloring = 2, erasing = 3 };
Draws draws_for(Purpose purpose, uint64_t index, uint64_t seed) {
  return {seed ^ (purpose * 0x9E3779B97F4A7C15U), index};
}

template <class Pixel, class Value>
void erase_some(const TransformOptions& options, uint64_t index, uint64_t seed,
                const PlanesOf<Pixel>& result, const Value& value) {
  if (!options.random || options.erase <= 0) return;
  Draws draws = draws_for(erasing, index, seed);
  if (draws.chance(options.erase)) erase_rectangle(result, draws, value);
}

template <class Pixel>
PlanesOf<Pixel> planes_of(const TransformOptions& options, Pixel* pixels) {
  return {pixels, static_cast<int>(options.channels), static_cast<int>(options.height),
          static_cast<int>(options.width)};
}

// Where the plan fills a part of the result, draws that part, and around it `value(plane)`.
template <class Pixel, class Value, class Draw>
void draw_in_place(const Plan& plan, const PlanesOf<Pixel>& result, const Value& value,
                   const Draw& draw) {
  if (plan.size.width >= result.width && plan.size.height >= result.height) {
    draw(result);
    return;
  }
  thread_local std::vector<Pixel> inner;
  const auto [width, height] = plan.size;
  inner.resize(static_cast<size_t>(width) * static_cast<size_t>(height) *
               static_cast<size_t>(result.channels));
  const PlanesOf<Pixel> part{inner.data(), result.channels, height, width};
  draw(part);
  for (int c = 0; c < result.channels; ++c) {
    std::fill_n(result.plane(c), static_cast<std::ptrdiff_t>(result.height) * result.width,
                value(c));
    for (int y = 0; y < height; ++y) {
      std::copy_n(
          part.plane(c) + static_cast<std::ptrdiff_t>(y) * width, width,
          result.plane(c) + static_cast<std::ptrdiff_t>(plan.top + y) * result.width + plan.left);
    }
  }
}

// Takes the mean image away from the planes, which hold (pixel - mean) * scale.
void take_mean_image(const Size& whole, const Plan& plan, const TransformOptions& options,
                     const Planes& result) {
  thread_local std::vector<float> drawn, turned;
  const auto planes = [&](std::vector<float>& values, const Size& size) {
    values.resize(static_cast<size_t>(size.width) * static_cast<size_t>(size.height) *
                  static_cast<size_t>(result.channels));
    return Planes{values.data(), result.channels, size.height, size.width};
  };
  const Planes image = planes(drawn, plan.size);
  options.mean_image->draw(whole, plan.region, options.rgb, plan.mirrored, image);
  const float* taken = image.values;
  if (!plan.affine.is_identity()) {
    const Planes moved = planes(turned, {result.width, result.height});
    apply(plan.affine, image, moved);
    taken = moved.values;
  }
  const auto count = static_cast<std::ptrdiff_t>(result.channels) * result.height * result.width;
  for (std::ptrdiff_t i = 0; i < count; ++i) result.values[i] -= taken[i] * options.scale;
}

// All steps except erasing.
void draw(const View& view, const Size& whole, const Plan& plan, const TransformOptions& options,
          uint64_t index, uint64_t seed, const Planes& result) {
  const bool recolored = options.random && recolors(options);
  const Finish finish{options.mean, recolored ? 1 : options.scale, options.rgb, plan.mirrored,
                      plan.filter};
  if (plan.middle) {
    resize(view, *plan.middle, finish, result);
  } else if (plan.affine.is_identity()) {
    resample(view, whole, plan.region, finish, result);
  } else {
    thread_local std::vector<float> wider;
    wider.resize(static_cast<size_t>(plan.size.width) * static_cast<size_t>(plan.size.height) *
                 static_cast<size_t>(options.channels));
    const Planes source{wider.data(), result.channels, plan.size.height, plan.size.width};
    resample(view, whole, plan.region, finish, source);
    apply(plan.affine, source, result);
  }
  if (recolored) {
    Draws draws = draws_for(recoloring, index, seed);
    recolor(options, draws, index, seed, result);
  }
  if (options.mean_image != nullptr) take_mean_image(whole, plan, options, result);
}

}  // namespace

Plan make_plan(const Size& whole, const TransformOptions& options, uint64_t index, uint64_t seed) {
  Plan plan;
  plan.size = crop_of(options);
  plan.filter = options.filter;
  if (!options.random) {
    take_middle(whole, options, plan);
    return plan;
  }
  Draws draws = draws_for(placing, index, seed);
  const uint32_t across = draws.bits(), down = draws.bits(), mirroring = draws.bits();
  plan.mirrored = options.mirror && (mirroring & 1U) != 0;
  plan.region = options.max_area > 0 ? resized_region(whole, options, draws)
                                     : plain_region(whole, options, across, down);
  Draws turns = draws_for(turning, index, seed);
  if (options.rotation > 0) {
    plan.affine = turned_by(turns.between(-options.rotation, options.rotation));
  }
  plan.affine = plan.affine.after(random_geometry(options, crop_of(options), index, seed));
  if (!plan.affine.is_identity()) grow(plan, crop_of(options));
  return plan;
}

int possible_shrink(const Plan& plan) {
  if (plan.middle) return 1;
  int shrink = 8;
  while (shrink > 1 && (plan.region.width < shrink * static_cast<double>(plan.size.width) ||
                        plan.region.height < shrink * static_cast<double>(plan.size.height))) {
    shrink /= 2;
  }
  return shrink;
}

Part needed_part(const Size& whole, int shrunk, const Plan& plan) {
  return plan.middle ? needed_part(*plan.middle, plan.filter)
                     : needed_part(whole, shrunk, plan.region, plan.size, plan.filter);
}

void transform(const View& view, const Size& whole, const Plan& plan,
               const TransformOptions& options, uint64_t index, uint64_t seed, float* pixels) {
  const Planes result = planes_of(options, pixels);
  draw_in_place(
      plan, result, [](int) { return 0.0F; },
      [&](const Planes& part) { draw(view, whole, plan, options, index, seed, part); });
  erase_some(options, index, seed, result, [](int) { return 0.0F; });
}

void transform(const View& view, const Size& whole, const Plan& plan,
               const TransformOptions& options, uint64_t index, uint64_t seed,
               unsigned char* pixels) {
  const BytePlanes result = planes_of(options, pixels);
  if (plan.affine.is_identity() && !(options.random && recolors(options))) {
    const Finish finish{options.mean, 1, options.rgb, plan.mirrored, plan.filter};
    const auto mean = [&](int plane) { return nearest_byte(mean_of_plane(options, plane)); };
    draw_in_place(plan, result, mean, [&](const BytePlanes& part) {
      plan.middle ? resize(view, *plan.middle, finish, part)
                  : resample(view, whole, plan.region, finish, part);
    });
  } else {
    thread_local std::vector<float> values;
    values.resize(static_cast<size_t>(options.channels * options.height * options.width));
    TransformOptions unscaled = options;
    unscaled.scale = 1;
    const Planes drawn = planes_of(options, values.data());
    draw(view, whole, plan, unscaled, index, seed, drawn);
    to_bytes(options, drawn, result);
  }
  erase(options, index, seed, result);
}

void erase(const TransformOptions& options, uint64_t index, uint64_t seed,
           const BytePlanes& result) {
  erase_some(options, index, seed, result,
             [&](int plane) { return nearest_byte(mean_of_plane(options, plane)); });
}

}  // namespace tandem::picture
