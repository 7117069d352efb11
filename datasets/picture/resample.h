// Resamples a region of a picture to planes of another size: in one pass from bytes to floats, or
// by ByteResize. Linear or cubic interpolation; where the picture shrinks, the filter is stretched
// to the width of one result pixel, so that fine detail does not become noise.
#pragma once

#include <array>

#include "datasets/picture/axis.h"
#include "datasets/picture/picture.h"
#include "plugins/center_crop.h"

namespace tandem::picture {

// How a byte becomes a value, and its place in the result.
struct Finish {
  std::array<float, 3> mean{};  // by channel of the picture; taken away, and then
  float scale = 1;              // multiplied by
  bool rgb = false;             // plane 0 is the picture's last channel
  bool mirrored = false;        // left to right
  Filter filter = Filter::linear;
};

// `whole`: the size of the whole picture. A region inside it is continued by its edge, one that
// reaches beyond it by the mean. `view` must contain the pixels that resample() reads: see
// needed_part(). Values of a cubic filter are kept from 0 to 255.
void resample(const View& view, const Size& whole, const Region& region, const Finish& finish,
              const Planes& result);
// The same as bytes, rounded to the nearest (ties to even), without mean and scale; beyond the
// picture the mean.
void resample(const View& view, const Size& whole, const Region& region, const Finish& finish,
              const BytePlanes& result);

// The middle of a picture as ByteResize makes it. `view` is as for its begin().
void resize(const View& view, const center_crop::Middle& middle, const Finish& finish,
            const Planes& result);
void resize(const View& view, const center_crop::Middle& middle, const Finish& finish,
            const BytePlanes& result);

// The pixels, of a picture shrunk so many times, that resample() to `size` may read, or resize():
// x and y in [0, width), [0, height).
struct Part {
  int left = 0, top = 0, right = 0, bottom = 0;  // right, bottom: the first beyond
};
[[nodiscard]] Part needed_part(const Size& whole, int shrunk, const Region& region,
                               const Size& size, Filter filter);
[[nodiscard]] Part needed_part(const center_crop::Middle& middle, Filter filter);

}  // namespace tandem::picture
