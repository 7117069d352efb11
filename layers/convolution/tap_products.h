// The products of a convolution's weight gradient, computed where the tensors lie: a tap of the
// kernel, times a vector of output channels, summed over pixels. The input is read value by value,
// so it may have any layout and strides. Everything runs on the calling thread and allocates
// nothing.
#pragma once

#include <cstdint>

namespace tandem::layers::taps {

// c = a^T b, or c += a^T b, summed over `lines` of `pixels` each. The value of a tap and a pixel is
// at a + line * a_line + pixel * a_pixel + taps[tap], the vector of a chunk of channels at b +
// line * b_line + pixel * b_pixel + chunk * b_chunk. c has `chunks` vectors for each tap.
struct Product {
  const float* a;
  int64_t a_line, a_pixel;
  const int64_t* taps;
  int64_t tap_count;
  const float* b;
  int64_t b_line, b_pixel, b_chunk;
  int64_t lines, pixels, chunks;
  float* c;
  bool adds;
};

struct Kernels {
  const char* instructions;  // such as "AVX2"
  int64_t lanes;
  int64_t panel;  // the most chunks of a product
  void (*multiply)(const Product& product);
  // sums[chunk], or += : of b's vectors over all pixels. `a`, `taps` and `c` are not used.
  void (*sum_pixels)(const Product& product, float* sums);
};

// The best that this CPU has and ONEDNN_MAX_CPU_ISA does not exclude.
[[nodiscard]] const Kernels& kernels();

}  // namespace tandem::layers::taps
