#include "plugins/cpu/pixels.h"

#include "plugins/cpu/team.h"
#include "plugins/cpu/vector.h"
#include "plugins/pixel_checks.h"
#include "plugins/pixels.h"

namespace tandem::cpu {

namespace {

TANDEM_CPU_VECTOR void convert_plane(const uint8_t* __restrict pixels, int64_t count, float mean,
                                     float scale, float* __restrict target) {
  for (int64_t i = 0; i < count; ++i) target[i] = pixels::value_of(pixels[i], mean, scale);
}

}  // namespace

void convert_pixels(int32_t threads, const tandem_pixels& given) {
  pixels::require_shape(given.shape);
  const int64_t channels = given.shape.c, plane = given.shape.h * given.shape.w;
  for_items(threads, given.shape.n * channels, plane, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      convert_plane(given.pixels + i * plane, plane, given.means[i % channels], given.scale,
                    given.target + i * plane);
    }
  });
}

}  // namespace tandem::cpu
