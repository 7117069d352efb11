#include "datasets/picture/colors.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <vector>

#include "datasets/picture/target_clones.h"

namespace tandem::picture {
namespace {

constexpr float red_share = 0.299F, green_share = 0.587F, blue_share = 0.114F;  // ITU-R BT.601

std::ptrdiff_t size_of(const Planes& planes) {
  return static_cast<std::ptrdiff_t>(planes.height) * planes.width;
}

float clamped(float value) {
  return std::clamp(value, 0.0F, 255.0F);
}

template <class Function>
void for_all(const Planes& planes, Function&& function) {
  const std::ptrdiff_t count = size_of(planes) * planes.channels;
  for (std::ptrdiff_t i = 0; i < count; ++i) planes.values[i] = clamped(function(planes.values[i]));
}

struct Colors {
  float *red, *green, *blue;
};
Colors colors_of(const Planes& planes, bool rgb) {
  return {planes.plane(rgb ? 0 : 2), planes.plane(1), planes.plane(rgb ? 2 : 0)};
}
float gray_of(const Colors& colors, std::ptrdiff_t i) {
  return red_share * colors.red[i] + green_share * colors.green[i] + blue_share * colors.blue[i];
}

void blur(const float* plane, int width, int height, std::vector<float>& result) {
  // As Pillow's SMOOTH: 1 around, 5 in the middle; edges stay.
  result.assign(plane, plane + static_cast<std::ptrdiff_t>(width) * height);
  for (int y = 1; y + 1 < height; ++y) {
    for (int x = 1; x + 1 < width; ++x) {
      const float* at = plane + static_cast<std::ptrdiff_t>(y) * width + x;
      const float around = at[-width - 1] + at[-width] + at[-width + 1] + at[-1] + at[1] +
                           at[width - 1] + at[width] + at[width + 1];
      result[static_cast<size_t>(at - plane)] = (around + 5 * at[0]) / 13;
    }
  }
}

}  // namespace

void change_brightness(const Planes& planes, double factor) {
  const auto f = static_cast<float>(factor);
  for_all(planes, [f](float value) { return value * f; });
}

void change_contrast(const Planes& planes, bool rgb, double factor) {
  double sum = 0;
  const std::ptrdiff_t count = size_of(planes);
  if (planes.channels == 3) {
    const Colors colors = colors_of(planes, rgb);
    for (std::ptrdiff_t i = 0; i < count; ++i) sum += static_cast<double>(gray_of(colors, i));
  } else {
    for (std::ptrdiff_t i = 0; i < count; ++i) sum += static_cast<double>(planes.values[i]);
  }
  const auto mean = static_cast<float>(sum / static_cast<double>(count));
  const auto f = static_cast<float>(factor);
  for_all(planes, [f, mean](float value) { return mean + (value - mean) * f; });
}

void change_saturation(const Planes& planes, bool rgb, double factor) {
  if (planes.channels != 3) return;
  const Colors colors = colors_of(planes, rgb);
  const auto f = static_cast<float>(factor);
  for (std::ptrdiff_t i = 0; i < size_of(planes); ++i) {
    const float gray = gray_of(colors, i);
    for (float* plane : {colors.red, colors.green, colors.blue}) {
      plane[i] = clamped(gray + (plane[i] - gray) * f);
    }
  }
}

void turn_hue(const Planes& planes, bool rgb, double turns) {
  if (planes.channels != 3) return;
  const Colors colors = colors_of(planes, rgb);
  const double angle = 2 * std::numbers::pi * turns;
  const auto c = static_cast<float>(std::cos(angle)), s = static_cast<float>(std::sin(angle));
  for (std::ptrdiff_t k = 0; k < size_of(planes); ++k) {
    const float r = colors.red[k], g = colors.green[k], b = colors.blue[k];
    const float y = gray_of(colors, k);
    const float i = 0.595716F * r - 0.274453F * g - 0.321263F * b;
    const float q = 0.211456F * r - 0.522591F * g + 0.311135F * b;
    const float i2 = c * i - s * q, q2 = s * i + c * q;
    colors.red[k] = clamped(y + 0.9563F * i2 + 0.6210F * q2);
    colors.green[k] = clamped(y - 0.2721F * i2 - 0.6474F * q2);
    colors.blue[k] = clamped(y - 1.1070F * i2 + 1.7046F * q2);
  }
}

void change_sharpness(const Planes& planes, double factor) {
  thread_local std::vector<float> blurred;
  const auto f = static_cast<float>(factor);
  for (int c = 0; c < planes.channels; ++c) {
    float* plane = planes.plane(c);
    blur(plane, planes.width, planes.height, blurred);
    for (std::ptrdiff_t i = 0; i < size_of(planes); ++i) {
      const float soft = blurred[static_cast<size_t>(i)];
      plane[i] = clamped(soft + (plane[i] - soft) * f);
    }
  }
}

void solarize(const Planes& planes, double threshold) {
  const auto limit = static_cast<float>(threshold);
  for_all(planes, [limit](float value) { return value < limit ? value : 255 - value; });
}

void posterize(const Planes& planes, int bits) {
  const auto step = static_cast<float>(1 << (8 - bits));
  for_all(planes, [step](float value) { return std::floor(value / step) * step; });
}

void stretch_contrast(const Planes& planes) {
  for (int c = 0; c < planes.channels; ++c) {
    float* plane = planes.plane(c);
    const auto [least, most] = std::minmax_element(plane, plane + size_of(planes));
    const float low = *least, range = *most - *least;
    if (range <= 0) continue;
    for (std::ptrdiff_t i = 0; i < size_of(planes); ++i) plane[i] = (plane[i] - low) * 255 / range;
  }
}

void equalize(const Planes& planes) {
  for (int c = 0; c < planes.channels; ++c) {
    float* plane = planes.plane(c);
    std::array<double, 256> below{};
    const auto level = [](float value) { return static_cast<size_t>(std::lround(value)); };
    for (std::ptrdiff_t i = 0; i < size_of(planes); ++i) ++below[level(clamped(plane[i]))];
    for (size_t v = 1; v < below.size(); ++v) below[v] += below[v - 1];
    const double first = *std::find_if(below.begin(), below.end(), [](double n) { return n > 0; });
    const double range = below.back() - first;
    if (range <= 0) continue;
    for (std::ptrdiff_t i = 0; i < size_of(planes); ++i) {
      plane[i] = static_cast<float>((below[level(clamped(plane[i]))] - first) * 255 / range);
    }
  }
}

}  // namespace tandem::picture
