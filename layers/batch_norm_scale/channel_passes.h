// The four loops of BatchNormScale over float32 or bfloat16 tensors in any layout, with the widest
// vectors of the CPU. Each works on the units [begin, end) of the channels (channels.h); its
// results do not depend on how the units are divided among calls.
#pragma once

#include <cstdint>

#include "layers/batch_norm/channels.h"
#include "plugins/cpu/bfloat16.h"

namespace tandem::layers {

// Values of the channels. The normalized value of x is ((x - high) - low) / the deviation.
struct NormValues {
  const float *high, *low;
  const float* factor;           // times x - high - low, or times the gradient
  const float* bias = nullptr;   // added in normalize, and where a ReLU is fused
  const float* mean = nullptr;   // of dy, in gradient
  const float* slope = nullptr;  // in gradient
};

template <class T>
struct ChannelPasses {
  // Adds to `first` the sums of the deviations from `about`, which holds a value near each
  // channel's, and to `second` those of their squares.
  void (*moments)(const Channels&, int64_t begin, int64_t end, const T* x, const float* about,
                  double* first, double* second);
  // y = (x - high - low) * factor + bias, as it is stored. To that the addend is added, unless it
  // is nullptr, and a ReLU applied to the result as it is stored. y may be x.
  void (*normalize)(const Channels&, int64_t begin, int64_t end, const T* x, const T* addend, T* y,
                    const NormValues& values, bool fuses_relu);
  // Adds to `first` the sums of dy, and to `second` those of dy * (x - high - low). With a fused
  // ReLU dy is 0 where the y of normalize is not positive, here and in `gradient`.
  void (*products)(const Channels&, int64_t begin, int64_t end, const T* x, const T* dy,
                   const NormValues& values, bool fuses_relu, double* first, double* second);
  // dx = ((dy - mean) - (x - high - low) * slope) * factor. dx may be dy.
  void (*gradient)(const Channels&, int64_t begin, int64_t end, const T* x, const T* dy, T* dx,
                   const NormValues& values, bool fuses_relu);
};

struct ChannelKernels {
  const char* target;  // the instruction set
  ChannelPasses<float> of_float32;
  ChannelPasses<cpu::bfloat16> of_bfloat16;

  [[nodiscard]] const ChannelPasses<float>& of(float) const { return of_float32; }
  [[nodiscard]] const ChannelPasses<cpu::bfloat16>& of(cpu::bfloat16) const { return of_bfloat16; }
};

// Those for this CPU.
const ChannelKernels& channel_kernels();

}  // namespace tandem::layers
