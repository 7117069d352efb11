// A borrowed picture in memory: 8 bits, rows of interleaved B,G,R or gray. It may be a part of the
// whole picture, and may have been decoded smaller. Positions and regions are always in pixels of
// the whole picture at full size.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tandem::picture {

struct Size {
  int width = 0, height = 0;
};

struct View {
  const unsigned char* pixels = nullptr;
  int width = 0, height = 0, channels = 3;
  std::ptrdiff_t stride = 0;  // bytes from row to row
  int shrunk = 1;             // one pixel of it is so many of the whole, each way
  int left = 0, top = 0;      // its first pixel, in pixels of its own
};

// Part of the whole picture; may reach beyond it.
struct Region {
  double x = 0, y = 0, width = 0, height = 0;
};

// Rows of floats or bytes, one plane for each channel.
template <class Value>
struct PlanesOf {
  Value* values = nullptr;
  int channels = 0, height = 0, width = 0;
  [[nodiscard]] Value* plane(int channel) const {
    return values + static_cast<std::ptrdiff_t>(channel) * height * width;
  }
};
using Planes = PlanesOf<float>;
using BytePlanes = PlanesOf<unsigned char>;

}  // namespace tandem::picture
