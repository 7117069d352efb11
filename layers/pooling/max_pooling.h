// Max pooling of images in vectors of channels, near the speed of memory on every CPU. A NaN is the
// maximum of every window that contains it. For the backward pass forward saves the place of each
// maximum in its window, one byte for each output: row * kernel width + column. Of equal elements
// the first one is the maximum.
#pragma once

#include <cstdint>

#include "plugins/cpu/bfloat16.h"

namespace tandem::layers {

struct MaxPooling {
  struct Axis {
    int64_t input, output, kernel, stride, pad;
  };
  Axis h, w;
  int64_t block;  // channels that are next to each other in memory: at least fewest_channels
};
inline constexpr int64_t fewest_channels = 4;
inline constexpr int64_t max_places = 256;  // pixels of a window

// Each function computes one row of a plane, which is `block` channels of an image: `x` is a plane
// of inputs, `y`, `dy` and `places` are planes of outputs. Everything runs on the calling thread.
template <class T>
struct MaxPoolingPasses {
  // `places` may be null.
  void (*forward)(const MaxPooling& pooling, int64_t output_row, const T* x, T* y, uint8_t* places);
  // `dx`: the row's gradients.
  void (*backward)(const MaxPooling& pooling, int64_t input_row, const T* dy, const uint8_t* places,
                   float* dx);
};
struct MaxPoolingKernels {
  const char* instructions;  // such as "AVX2"
  MaxPoolingPasses<float> float32;
  MaxPoolingPasses<cpu::bfloat16> bfloat16;
};

// The best that this CPU has and ONEDNN_MAX_CPU_ISA does not exclude.
[[nodiscard]] const MaxPoolingKernels& max_pooling_kernels();

}  // namespace tandem::layers
