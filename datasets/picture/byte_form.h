// Pictures whose pixels are bytes, converted to (byte - mean) * scale elsewhere. Pixels added
// around or in a picture have the mean, which may be outside the range of a byte.
#pragma once

#include "datasets/picture/picture.h"
#include "datasets/picture/transform_options.h"

namespace tandem::picture {

// The nearest byte, ties to even.
[[nodiscard]] unsigned char nearest_byte(float value);
// The mean of a plane, in the net's order of colors.
[[nodiscard]] float mean_of_plane(const TransformOptions& options, int plane);

// Fills in whether pictures can be bytes and how they become floats. If they cannot, the host gets
// the reason.
void describe_bytes(const TransformOptions& options, tandem_dataset_info& info);

// The reason why pictures cannot be bytes; "" if they can.
[[nodiscard]] std::string why_no_bytes(const TransformOptions& options);

// `values` are pixel - mean.
void to_bytes(const TransformOptions& options, const Planes& values, const BytePlanes& result);

}  // namespace tandem::picture
