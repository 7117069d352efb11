// The loops of convolutions in vectors of pixels: of planes, each of one channel, in which all rows
// follow each other, so that a vector may hold the pixels of several rows. Everything runs on the
// calling thread and allocates nothing.
#pragma once

#include <cstdint>

namespace tandem::layers::pixel_products {

// Channels whose weights of a term are next to each other, so that vectors of the source are read
// once for all of them.
inline constexpr int64_t channels_at_once = 4;

// target(channel, i) = the sum over the terms of weight * source[terms[term] + i], or += that.
// Weights are blocks of channels_at_once channels (the last one may have fewer), in each of them
// (term, channel). The target's planes have `target_plane` floats.
struct Convolved {
  const float* source;
  const int64_t* terms;
  int64_t term_count;
  const float* weights;
  int64_t channels;
  float* target;
  int64_t target_plane;
  int64_t vectors;  // of a plane
  bool adds;
};

// sums(channel, term) += the sum over i of gradient(channel, i) * source[terms[term] + i].
struct Correlated {
  const float* source;
  const int64_t* terms;
  int64_t term_count;
  const float* gradient;
  int64_t gradient_plane;
  int64_t channels;
  int64_t vectors;  // of a plane
  float* sums;
  int64_t sums_of_channel;  // floats from a channel's sums to the next one's
};

struct Kernels {
  const char* instructions;  // such as "AVX2"
  int64_t lanes;
  void (*convolve)(const Convolved& convolved);
  void (*correlate)(const Correlated& correlated);
  // `count` pixels of channels_at_once channels, which are next to each other in an image whose
  // pixels are `step` floats apart, to planes that are `plane` floats apart.
  void (*load)(const float* image, int64_t step, int64_t count, float* planes, int64_t plane);
  // The reverse, with a bias for each channel.
  void (*store)(const float* planes, int64_t plane, int64_t count, const float* bias, float* image,
                int64_t step);
  // The sum of `vectors` vectors.
  float (*sum)(const float* values, int64_t vectors);
};

// The best that this CPU has and ONEDNN_MAX_CPU_ISA does not exclude.
[[nodiscard]] const Kernels& kernels();

}  // namespace tandem::layers::pixel_products
