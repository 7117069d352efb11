// Changes of color, in place, on planes of 0 to 255; a result stays in that range. `factor` 1
// changes nothing, 0 is black, flat, gray or blurred. Gray planes have no saturation and no hue.
// The planes are B,G,R (or gray); `rgb`: R,G,B.
#pragma once

#include "datasets/picture/picture.h"

namespace tandem::picture {

void change_brightness(const Planes& planes, double factor);
void change_contrast(const Planes& planes, bool rgb, double factor);  // from the mean gray
void change_saturation(const Planes& planes, bool rgb, double factor);
void turn_hue(const Planes& planes, bool rgb, double turns);  // 1: once around, in YIQ
void change_sharpness(const Planes& planes, double factor);   // from a 3x3 blur
void solarize(const Planes& planes, double threshold);        // inverts what is above it
void posterize(const Planes& planes, int bits);               // keeps the highest bits
void stretch_contrast(const Planes& planes);                  // each plane to 0..255
void equalize(const Planes& planes);                          // each plane's histogram

}  // namespace tandem::picture
