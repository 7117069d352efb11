#include "datasets/picture/byte_form.h"

#include <cmath>

#include "datasets/picture/recolor.h"
#include "datasets/picture/rows.h"

namespace tandem::picture {
namespace {

// The option that adds pixels with the mean, or "".
std::string_view what_shows_mean(const TransformOptions& options) {
  if (options.fit == center_crop::Fit::pad) return "fit=pad";
  if (!options.random) return "";
  if (options.pad > 0) return "pad";
  if (options.rotation > 0) return "rotation";
  if (may_move_pixels(options)) return "randaugment";
  return options.erase > 0 ? "erase" : "";
}

}  // namespace

unsigned char nearest_byte(float value) {
  unsigned char byte = 0;
  round_row(&value, 1, 0, &byte);
  return byte;
}

float mean_of_plane(const TransformOptions& options, int plane) {
  const auto last = static_cast<int>(options.channels) - 1;
  return options.mean[static_cast<size_t>(options.rgb ? last - plane : plane)];
}

std::string why_no_bytes(const TransformOptions& options) {
  if (options.scale == 0 || !std::isfinite(options.scale)) {
    return sdk::text("scale is ", options.scale, "; that of bytes is finite and not 0");
  }
  if (options.mean_image != nullptr) return "mean_image has a mean for each pixel; bytes have one";
  const std::string_view shows_mean = what_shows_mean(options);
  for (int plane = 0; !shows_mean.empty() && plane < options.channels; ++plane) {
    const float mean = mean_of_plane(options, plane);
    if (mean >= -0.5F && mean <= 255.5F) continue;
    return sdk::text(shows_mean, " shows the mean of ", mean,
                     ", which no byte from 0 to 255 can be");
  }
  return "";
}

void describe_bytes(const TransformOptions& options, tandem_dataset_info& info) {
  const std::string reason = why_no_bytes(options);
  if (!reason.empty()) {
    sdk::host->explain(reason.c_str());
    return;
  }
  info.has_bytes = 1;
  info.byte_scale = options.scale;
  for (int plane = 0; plane < options.channels; ++plane) {
    info.byte_means[plane] = mean_of_plane(options, plane);
  }
}

void to_bytes(const TransformOptions& options, const Planes& values, const BytePlanes& result) {
  const std::ptrdiff_t count = static_cast<std::ptrdiff_t>(values.height) * values.width;
  for (int plane = 0; plane < values.channels; ++plane) {
    round_row(values.plane(plane), count, mean_of_plane(options, plane), result.plane(plane));
  }
}

}  // namespace tandem::picture
