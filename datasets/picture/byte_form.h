// Pictures whose pixels are bytes: what a net reads of them is (byte - mean) * scale, made of them
// elsewhere. What no byte can be is only known where something is put around or into a picture.
#pragma once

#include "datasets/picture/transform.h"

namespace tandem::picture {

// The nearest byte, ties to even.
[[nodiscard]] unsigned char nearest_byte(float value);
// Of the plane that a net reads as its channel, in its order of colours.
[[nodiscard]] float mean_of_plane(const TransformOptions& options, int plane);

// Fills in whether such pictures can be had, and what makes floats of them; where they cannot, the
// reason is explained to the host.
void describe_bytes(const TransformOptions& options, tandem_dataset_info& info);

// The reason; "" if they can.
[[nodiscard]] std::string why_no_bytes(const TransformOptions& options);

// `values` are pixel - mean.
void to_bytes(const TransformOptions& options, const Planes& values, const BytePlanes& result);

}  // namespace tandem::picture
