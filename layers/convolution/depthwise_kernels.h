// The loops of depthwise convolutions: each channel has a kernel of its own. Pixels are vectors of
// the channels that a layout has next to each other. Everything runs on the calling thread and
// allocates nothing.
#pragma once

#include <cstdint>

namespace tandem::layers::depthwise {

// A pixel of the source that a target pixel is computed from: for the target's pixel j it is pixel
// first + j * source_step of a row that begins at `row` (in pixels), if the row has it.
struct Tap {
  int64_t row, first, weight;  // weight: its number in the kernel
};

// A row of target pixels, or every n-th pixel of it. All taps of pixels [begin, end) are in the
// source.
struct Line {
  const Tap* taps;
  int64_t tap_count;
  int64_t target, target_step, count;  // in pixels of the target
  int64_t source_step, source_width;
  int64_t begin, end;
};

// A plane has `block` channels next to each other, at least fewest_channels; so have weights for
// each point of the kernel.
inline constexpr int64_t fewest_channels = 8;

struct Kernels {
  const char* instructions;  // such as "AVX2"
  int64_t lanes;
  // target = bias + the sum of weighted taps; `bias` may be null.
  void (*convolve)(const Line& line, int64_t block, const float* source, const float* weights,
                   const float* bias, float* target);
  // Of one vector of channels. sums(kernel point, lane) += source * gradient over the line's
  // pixels.
  void (*sum)(const Line& line, int64_t block, const float* source, const float* gradient,
              float* sums);
  // bias(lane) += gradient.
  void (*sum_gradient)(const Line& line, int64_t block, const float* gradient, float* bias);
};

// The best that this CPU has and ONEDNN_MAX_CPU_ISA does not exclude.
[[nodiscard]] const Kernels& kernels();

}  // namespace tandem::layers::depthwise
