// What the cpu kernels of BatchNorm and BatchNormScale do with the statistics of channels. They are
// (count, mean, sum of squared deviations) in double, as forward_statistics() of the type describes
// them. They can be merged without loss of precision for any mean; sums of x and x * x could not.
#pragma once

#include <cmath>
#include <cstdint>

#include "layers/batch_norm/batch_norm.h"

namespace tandem::layers {

// A view of the statistics.
template <class Double>
struct ChannelMoments {
  ChannelMoments(Double* memory, int64_t channels)
      : count(memory), mean(memory + 1), squares(memory + 1 + channels) {}
  Double *count, *mean, *squares;
};

// The statistics from each channel's sum of deviations from `about` and then their squares, over
// `each` values per channel.
inline void moments_of_sums(const double* sums, const float* about, int64_t channels, int64_t each,
                            double* target) {
  const ChannelMoments<double> moments(target, channels);
  const auto m = static_cast<double>(each);
  *moments.count = m;
  for (int64_t c = 0; c < channels; ++c) {
    const double mean = sums[c] / m;
    moments.mean[c] = static_cast<double>(about[c]) + mean;
    // Rounding may make this negative for a channel of one value. A NaN stays NaN.
    const double squares = sums[channels + c] - mean * sums[c];
    moments.squares[c] = squares < 0 ? 0 : squares;
  }
}

// The moments of two sets of rows from those of each set (T. Chan, G. Golub, R. LeVeque, 1979).
inline void merge_moments(int64_t channels, float* target, const float* const* sources,
                          uint32_t source_count) {
  const ChannelMoments<double> all(reinterpret_cast<double*>(target), channels);
  for (uint32_t s = 0; s < source_count; ++s) {
    const ChannelMoments<const double> other(reinterpret_cast<const double*>(sources[s]), channels);
    const double count = *all.count + *other.count, weight = *other.count / count;
    for (int64_t c = 0; c < channels; ++c) {
      const double distance = other.mean[c] - all.mean[c];
      all.mean[c] += distance * weight;
      all.squares[c] += other.squares[c] + distance * distance * *all.count * weight;
    }
    *all.count = count;
  }
}

// For each channel the mean as two floats, since x - high is exact for x near it, and 1 / the
// standard deviation: ((x - high) - low) * scale is the normalized value.
struct ChannelNorm {
  float *high, *low, *scale;

  void set(int64_t channel, double mean, double variance, double eps) const {
    high[channel] = static_cast<float>(mean);
    low[channel] = static_cast<float>(mean - static_cast<double>(high[channel]));
    scale[channel] = static_cast<float>(1 / std::sqrt(variance + eps));
  }
  void set(const ChannelMoments<const double>& moments, int64_t channels, double eps) const {
    for (int64_t c = 0; c < channels; ++c) {
      set(c, moments.mean[c], moments.squares[c] / *moments.count, eps);
    }
  }
  // From the running sums.
  void set_kept(const sdk::Pass& pass, int64_t channels, double eps) const {
    const double total = pass.weight(2)[0], factor = total == 0 ? 0 : 1 / total;
    for (int64_t c = 0; c < channels; ++c) {
      set(c, factor * static_cast<double>(pass.weight(0)[c]),
          factor * static_cast<double>(pass.weight(1)[c]), eps);
    }
  }
};

// Running sums as in Caffe: earlier steps fade, and the variance is that of the population.
inline void keep_moments(const ChannelMoments<const double>& moments, int64_t channels,
                         float fraction, const sdk::Pass& pass) {
  const double m = *moments.count, divisor = m > 1 ? m - 1 : 1;
  float *mean = pass.state(0), *variance = pass.state(1), *factor = pass.state(2);
  for (int64_t c = 0; c < channels; ++c) {
    mean[c] = fraction * mean[c] + static_cast<float>(moments.mean[c]);
    variance[c] = fraction * variance[c] + static_cast<float>(moments.squares[c] / divisor);
  }
  *factor = fraction * *factor + 1;
}

}  // namespace tandem::layers
