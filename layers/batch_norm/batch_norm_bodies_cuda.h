// The device code of BatchNorm on NVIDIA GPUs. Statistics are, as on the cpu, (count, mean, sum of
// squared deviations) in double.
#pragma once

#include <algorithm>
#include <cmath>

#include "layers/common/broadcast_cuda.h"

namespace tandem::layers {

// A view of the statistics as forward_statistics() of the type describes them.
struct BatchNormMoments {
  TANDEM_HOST_DEVICE BatchNormMoments(const double* memory, int64_t channels)
      : count(memory), mean(memory + 1), squares(memory + 1 + channels) {}
  const double *count, *mean, *squares;
};

// A value near a channel's mean: the median of its first, middle and last value. From one value
// alone, if it is an outlier, all deviations would be large, and the variance would be a small
// difference of large sums.
template <class T>
struct BatchNormOrigin {
  template <int m>
  [[nodiscard]] TANDEM_HOST_DEVICE cuda::Values<m> of(int64_t channel) const {
    const auto first = cuda::constants<m>(x + index.index_of(channel, 0));
    const auto middle = cuda::constants<m>(x + index.index_of(channel, count / 2));
    const auto last = cuda::constants<m>(x + index.index_of(channel, count - 1));
    return cuda::each_lane<m>([&](int lane) {
      const float low = first[lane] < middle[lane] ? first[lane] : middle[lane];
      const float high = first[lane] < middle[lane] ? middle[lane] : first[lane];
      return last[lane] < low ? low : last[lane] > high ? high : last[lane];
    });
  }
  BroadcastIndex index;
  const T* x;
  int64_t count;  // of a channel's values
};

// The sums of the deviations from a channel's origin, and of their squares.
template <class T>
struct BatchNormMomentTerms {
  using Element = T;
  static constexpr int ahead = 4;
  [[nodiscard]] bool are_aligned() const { return cuda::are_aligned(origin.x); }
  template <int m>
  [[nodiscard]] TANDEM_HOST_DEVICE cuda::Values<m> groups(int64_t channel) const {
    return origin.template of<m>(channel);
  }
  template <int n, bool aligned>
  [[nodiscard]] TANDEM_HOST_DEVICE auto read(int64_t i) const {
    return cuda::read<n, aligned>(origin.x + i);
  }
  template <int m, int n>
  [[nodiscard]] TANDEM_HOST_DEVICE cuda::FloatPair value(const cuda::Values<m>& origins, int group,
                                                         const cuda::Elements<T, n>& v,
                                                         int lane) const {
    const float distance = v[lane] - origins[group];
    return {distance, distance * distance};
  }
  BatchNormOrigin<T> origin;
};
template <class T>
struct BatchNormStoreMoments {
  TANDEM_HOST_DEVICE void operator()(int64_t channel, const cuda::Pair& sums) const {
    const auto count = static_cast<double>(origin.count);
    const double mean = sums.first / count;
    if (channel == 0) target[0] = count;
    target[1 + channel] = static_cast<double>(origin.template of<1>(channel)[0]) + mean;
    // Rounding may make this negative for a channel of one value. A NaN stays NaN.
    const double squares = sums.second - mean * sums.first;
    target[1 + channels + channel] = squares < 0 ? 0 : squares;
  }
  BatchNormOrigin<T> origin;
  int64_t channels;
  double* target;
};

// The moments of two sets of rows from those of each set. BatchNormMergeCounts merges the counts,
// since all channels read them.
struct BatchNormMerge {
  TANDEM_HOST_DEVICE void operator()(int64_t channel) const {
    double* mean = target + 1 + channel;
    double* squares = target + 1 + channels + channel;
    const BatchNormMoments other(source, channels);
    const double count = *target + *other.count, weight = *other.count / count;
    const double distance = other.mean[channel] - *mean;
    *mean += distance * weight;
    *squares += other.squares[channel] + distance * distance * *target * weight;
  }
  int64_t channels;
  double* target;
  const double* source;
};
struct BatchNormMergeCounts {
  TANDEM_HOST_DEVICE void operator()(int64_t) const { *target = *target + *source; }
  double* target;
  const double* source;
};

// A channel's coefficients from the statistics of the batch: the mean in two floats, so that x -
// high is exact for x near it, and 1 / sqrt(variance + eps). If `kept_mean` is not nullptr, also
// updates the running sums: as in Caffe, earlier steps fade, and the variance is that of the
// population.
struct BatchNormCoefficients {
  TANDEM_HOST_DEVICE void operator()(int64_t channel) const {
    const BatchNormMoments all(statistics, channels);
    const double count = *all.count;
    set(channel, all.mean[channel], all.squares[channel] / count);
    if (saved != nullptr && channel == 0) saved[channels] = static_cast<float>(1 / count);
    if (kept_mean == nullptr) return;
    const double divisor = count > 1 ? count - 1 : 1;
    kept_mean[channel] = fraction * kept_mean[channel] + static_cast<float>(all.mean[channel]);
    kept_variance[channel] =
        fraction * kept_variance[channel] + static_cast<float>(all.squares[channel] / divisor);
    if (channel == 0) *kept_factor = fraction * *kept_factor + 1;
  }
  TANDEM_HOST_DEVICE void set(int64_t channel, double mean, double variance) const {
    const auto high = static_cast<float>(mean);
    const auto scale = static_cast<float>(1 / sqrt(variance + eps));
    coefficients[channel] = high;
    coefficients[channels + channel] = static_cast<float>(mean - static_cast<double>(high));
    coefficients[2 * channels + channel] = scale;
    if (saved != nullptr) saved[channel] = scale;
  }
  int64_t channels;
  double eps;
  float fraction;
  const double* statistics;
  float *kept_mean, *kept_variance, *kept_factor;
  float *coefficients, *saved;  // saved: nullptr without a backward pass
};
// The same from the running sums.
struct BatchNormKeptCoefficients {
  TANDEM_HOST_DEVICE void operator()(int64_t channel) const {
    const auto total = static_cast<double>(*kept.kept_factor);
    const double factor = total == 0 ? 0 : 1 / total;
    kept.set(channel, factor * static_cast<double>(kept.kept_mean[channel]),
             factor * static_cast<double>(kept.kept_variance[channel]));
  }
  BatchNormCoefficients kept;
};

// y = (x - high) * factor + shift.
template <int m>
struct BatchNormLine {
  cuda::Values<m> high, factor, shift;
  [[nodiscard]] TANDEM_HOST_DEVICE float distance(float x, int group) const {
    return x - high[group];
  }
  // Of a distance. Explicit, so that every pass computes the same bits.
  [[nodiscard]] TANDEM_HOST_DEVICE float at(float distance, int group) const {
    return fmaf(distance, factor[group], shift[group]);
  }
};
// The lines of channels without weights.
struct BatchNormLines {
  template <int m>
  [[nodiscard]] TANDEM_HOST_DEVICE BatchNormLine<m> of(int64_t channel) const {
    BatchNormLine<m> line;
    line.high = cuda::constants<m>(coefficients + channel);
    line.factor = cuda::constants<m>(coefficients + 2 * channels + channel);
    const auto low = cuda::constants<m>(coefficients + channels + channel);
    line.shift = cuda::each_lane<m>([&](int lane) { return -low[lane] * line.factor[lane]; });
    return line;
  }
  int64_t channels;
  const float* coefficients;
};

template <class T, class Lines>
struct BatchNormForward {
  using Element = T;
  static constexpr int ahead = 4;
  static constexpr int resident = 3;
  [[nodiscard]] bool are_aligned() const { return cuda::are_aligned(x, y); }
  template <int m>
  [[nodiscard]] TANDEM_HOST_DEVICE auto groups(int64_t channel) const {
    return lines.template of<m>(channel);
  }
  template <int n>
  [[nodiscard]] TANDEM_HOST_DEVICE auto read(int64_t i) const {
    return cuda::read<n>(x + i);
  }
  template <int m, int n>
  [[nodiscard]] TANDEM_HOST_DEVICE float value(const BatchNormLine<m>& line, int group,
                                               const cuda::Elements<T, n>& v, int lane) const {
    return line.at(line.distance(v[lane], group), group);
  }
  template <int n>
  TANDEM_HOST_DEVICE void write(int64_t i, const cuda::Values<n>& values) const {
    write_with_relu(values, y + i, fuses_relu);
  }
  Lines lines;
  const T* x;
  T* y;
  bool fuses_relu;
};

// Terms of the sums of dy and of dy * y.
template <class T>
struct BatchNormGradientTerms {
  using Element = T;
  static constexpr int ahead = 2;
  [[nodiscard]] bool are_aligned() const { return cuda::are_aligned(dy, y); }
  template <int m>
  [[nodiscard]] TANDEM_HOST_DEVICE cuda::NoConstants groups(int64_t) const {
    return {};
  }
  template <int n, bool aligned>
  [[nodiscard]] TANDEM_HOST_DEVICE auto read(int64_t i) const {
    return cuda::read_two<n, aligned>(dy + i, y + i);
  }
  template <int n>
  [[nodiscard]] TANDEM_HOST_DEVICE cuda::FloatPair value(const cuda::NoConstants&, int,
                                                         const cuda::TwoElements<T, n>& v,
                                                         int lane) const {
    return {v.first[lane], v.first[lane] * v.second[lane]};
  }
  const T *dy, *y;
};
struct BatchNormStoreGradients {
  TANDEM_HOST_DEVICE void operator()(int64_t channel, const cuda::Pair& sums) const {
    target[channel] = static_cast<float>(sums.first);
    target[channels + channel] = static_cast<float>(sums.second);
  }
  int64_t channels;
  float* target;
};

// dx = (dy - mean(dy) - y * mean(dy * y)) / sqrt(variance + eps). sums is nullptr with running
// statistics, which do not depend on x.
template <class T>
struct BatchNormBackward {
  using Element = T;
  static constexpr int ahead = 4;
  static constexpr int resident = 2;
  [[nodiscard]] bool are_aligned() const { return cuda::are_aligned(dy, y, dx); }
  // dx = dy * factor + y * slope + shift.
  template <int m>
  struct Plane {
    cuda::Values<m> factor, slope, shift;
  };
  template <int m>
  [[nodiscard]] TANDEM_HOST_DEVICE Plane<m> groups(int64_t channel) const {
    Plane<m> result{cuda::constants<m>(saved + channel), {}, {}};
    if (sums == nullptr) return result;
    const float each = saved[channels];
    const auto sum = cuda::constants<m>(sums + channel);
    const auto product = cuda::constants<m>(sums + channels + channel);
    TANDEM_UNROLL
    for (int lane = 0; lane < m; ++lane) {
      result.slope.value[lane] = -(product[lane] * each) * result.factor[lane];
      result.shift.value[lane] = -(sum[lane] * each) * result.factor[lane];
    }
    return result;
  }
  template <int n>
  [[nodiscard]] TANDEM_HOST_DEVICE auto read(int64_t i) const {
    return cuda::read_two<n>(dy + i, y + i);
  }
  template <int m, int n>
  [[nodiscard]] TANDEM_HOST_DEVICE float value(const Plane<m>& plane, int group,
                                               const cuda::TwoElements<T, n>& v, int lane) const {
    if (sums == nullptr) return v.first[lane] * plane.factor[group];
    const float rest = fmaf(v.second[lane], plane.slope[group], plane.shift[group]);
    return fmaf(v.first[lane], plane.factor[group], rest);
  }
  template <int n>
  TANDEM_HOST_DEVICE void write(int64_t i, const cuda::Values<n>& values) const {
    cuda::write(values, dx + i);
  }
  int64_t channels;
  const T *dy, *y;
  const float *saved, *sums;
  T* dx;
};

}  // namespace tandem::layers
