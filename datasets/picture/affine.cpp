#include "datasets/picture/affine.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "datasets/picture/target_clones.h"

namespace tandem::picture {
namespace {

struct Row {
  double x, y;    // where the row's first pixel comes from
  double dx, dy;  // and each next one
};

TANDEM_TARGET_CLONES void interpolate_row(const float* plane, int width, int height, const Row& row,
                                          int count, float* result) {
  for (int i = 0; i < count; ++i) {
    const double x = std::clamp(row.x + i * row.dx, 0.0, width - 1.0);
    const double y = std::clamp(row.y + i * row.dy, 0.0, height - 1.0);
    const int left = std::min(static_cast<int>(x), std::max(0, width - 2));
    const int top = std::min(static_cast<int>(y), std::max(0, height - 2));
    const auto fx = static_cast<float>(x - left), fy = static_cast<float>(y - top);
    const float* at = plane + static_cast<std::ptrdiff_t>(top) * width + left;
    const int right = width > 1 ? 1 : 0, down = height > 1 ? width : 0;
    const float above = at[0] + fx * (at[right] - at[0]);
    const float below = at[down] + fx * (at[down + right] - at[down]);
    result[i] = above + fy * (below - above);
  }
}

}  // namespace

Affine Affine::after(const Affine& next) const {
  const auto& a = m;
  const auto& b = next.m;
  return {{a[0] * b[0] + a[1] * b[3], a[0] * b[1] + a[1] * b[4], a[0] * b[2] + a[1] * b[5] + a[2],
           a[3] * b[0] + a[4] * b[3], a[3] * b[1] + a[4] * b[4], a[3] * b[2] + a[4] * b[5] + a[5]}};
}

Affine turned_by(double degrees) {
  const double angle = degrees * std::numbers::pi / 180;
  return {{std::cos(angle), std::sin(angle), 0, -std::sin(angle), std::cos(angle), 0}};
}

Affine sheared_by(double x, double y) {
  return {{1, x, 0, y, 1, 0}};
}

Affine shifted_by(double x, double y) {
  return {{1, 0, x, 0, 1, y}};
}

Size source_size(const Affine& affine, const Size& result) {
  const double x = result.width / 2.0, y = result.height / 2.0;
  const auto& m = affine.m;
  const double reach_x = std::abs(m[0]) * x + std::abs(m[1]) * y + std::abs(m[2]);
  const double reach_y = std::abs(m[3]) * x + std::abs(m[4]) * y + std::abs(m[5]);
  // As much odd or even as the result, so that centres and pixels fall together.
  const auto grown = [](double reach, int size) {
    return size + 2 * static_cast<int>(std::ceil(std::max(0.0, reach - size / 2.0) + 1));
  };
  return {grown(reach_x, result.width), grown(reach_y, result.height)};
}

void apply(const Affine& affine, const Planes& source, const Planes& result) {
  const auto& m = affine.m;
  const double first = 0.5 - result.width / 2.0;
  for (int c = 0; c < result.channels; ++c) {
    for (int y = 0; y < result.height; ++y) {
      const double from_centre = y + 0.5 - result.height / 2.0;
      const Row row{m[0] * first + m[1] * from_centre + m[2] + source.width / 2.0 - 0.5,
                    m[3] * first + m[4] * from_centre + m[5] + source.height / 2.0 - 0.5, m[0],
                    m[3]};
      interpolate_row(source.plane(c), source.width, source.height, row, result.width,
                      result.plane(c) + static_cast<std::ptrdiff_t>(y) * result.width);
    }
  }
}

}  // namespace tandem::picture
