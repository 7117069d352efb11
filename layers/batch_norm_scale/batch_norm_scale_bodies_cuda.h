// The device code of BatchNormScale on NVIDIA GPUs. Statistics and coefficients are those of
// BatchNorm: for each channel high, low and scale, of which ((x - high) - low) * scale is the
// normalized value.
#pragma once

#include "layers/batch_norm/batch_norm_bodies_cuda.h"
#include "layers/batch_norm_scale/batch_norm_scale.h"

namespace tandem::layers {

// The lines of channels with their weights.
struct BatchNormScaleLines {
  template <int m>
  [[nodiscard]] TANDEM_HOST_DEVICE BatchNormLine<m> of(int64_t channel) const {
    BatchNormLine<m> line;
    line.high = cuda::constants<m>(coefficients + channel);
    const auto low = cuda::constants<m>(coefficients + channels + channel);
    const auto scale = cuda::constants<m>(coefficients + 2 * channels + channel);
    const auto weights = cuda::constants<m>(weight + channel);
    const auto biases = cuda::constants<m>(bias + channel);
    TANDEM_UNROLL
    for (int lane = 0; lane < m; ++lane) {
      line.factor.value[lane] = weights[lane] * scale[lane];
      line.shift.value[lane] = fmaf(-low[lane], line.factor[lane], biases[lane]);
    }
    return line;
  }
  int64_t channels;
  const float *coefficients, *weight, *bias;
};

// The forward pass with an addend, which is added to y as it is stored.
template <class T>
struct BatchNormScaleSum : BatchNormForward<T, BatchNormScaleLines> {
  static constexpr int ahead = 2;  // as many as registers allow
  [[nodiscard]] bool are_aligned() const { return cuda::are_aligned(this->x, addend, this->y); }
  template <int n>
  [[nodiscard]] TANDEM_HOST_DEVICE auto read(int64_t i) const {
    return cuda::read_two<n>(this->x + i, addend + i);
  }
  template <int m, int n>
  [[nodiscard]] TANDEM_HOST_DEVICE float value(const BatchNormLine<m>& line, int group,
                                               const cuda::TwoElements<T, n>& v, int lane) const {
    T stored;
    cuda::store(line.at(line.distance(v.first[lane], group), group), stored);
    return cuda::load(stored) + v.second[lane];
  }
  const T* addend;
};

// The gradient of the values before the fused ReLU, if there is one: dy where y, computed as in the
// forward pass, is above zero.
template <class T, int m>
TANDEM_HOST_DEVICE inline float through_relu(const BatchNormLine<m>& line, int group,
                                             float distance, float dy, bool fuses_relu) {
  const bool passes = is_above_zero<T>(line.at(distance, group)) || !fuses_relu;
  return passes ? dy : 0.0F;
}

// Terms of the sums of dy and of dy * (x - high).
template <class T>
struct BatchNormScaleGradientTerms {
  using Element = T;
  static constexpr int ahead = 2;
  [[nodiscard]] bool are_aligned() const { return cuda::are_aligned(dy, x); }
  template <int m>
  [[nodiscard]] TANDEM_HOST_DEVICE auto groups(int64_t c) const {
    return lines.template of<m>(c);
  }
  template <int n, bool aligned>
  [[nodiscard]] TANDEM_HOST_DEVICE auto read(int64_t i) const {
    return cuda::read_two<n, aligned>(dy + i, x + i);
  }
  template <int m, int n>
  [[nodiscard]] TANDEM_HOST_DEVICE cuda::FloatPair value(const BatchNormLine<m>& line, int group,
                                                         const cuda::TwoElements<T, n>& v,
                                                         int lane) const {
    const float distance = line.distance(v.second[lane], group);
    const float gradient = through_relu<T>(line, group, distance, v.first[lane], fuses_relu);
    return {gradient, gradient * distance};
  }
  BatchNormScaleLines lines;
  const T *dy, *x;
  bool fuses_relu;
};
// The sums of dy and of dy * x', where x' is the normalized x.
struct BatchNormScaleStoreGradients {
  TANDEM_HOST_DEVICE void operator()(int64_t channel, const cuda::Pair& sums) const {
    const auto low = static_cast<double>(coefficients[channels + channel]);
    const auto scale = static_cast<double>(coefficients[2 * channels + channel]);
    target[channel] = static_cast<float>(sums.first);
    target[channels + channel] = static_cast<float>((sums.second - low * sums.first) * scale);
  }
  int64_t channels;
  const float* coefficients;
  float* target;
};

// dx = (dy - mean(dy) - x' * mean(dy * x')) * weight * scale. sums is nullptr with running
// statistics, which do not depend on x. lines.coefficients[3 * channels] is 1 / the number of
// values of a channel in the batch.
template <class T>
struct BatchNormScaleBackward {
  using Element = T;
  static constexpr int ahead = 3;  // as many as registers allow
  static constexpr int resident = 2;
  [[nodiscard]] bool are_aligned() const { return cuda::are_aligned(dy, x, dx); }
  // dx = dy * line.factor + (x - line.high) * slope + shift.
  template <int m>
  struct Plane {
    BatchNormLine<m> line;
    cuda::Values<m> slope, shift;
  };
  template <int m>
  [[nodiscard]] TANDEM_HOST_DEVICE Plane<m> groups(int64_t c) const {
    Plane<m> result{lines.template of<m>(c), {}, {}};
    if (sums == nullptr) return result;
    const int64_t channels = lines.channels;
    const float* coefficients = lines.coefficients;
    const float each = coefficients[3 * channels];
    const auto low = cuda::constants<m>(coefficients + channels + c);
    const auto scale = cuda::constants<m>(coefficients + 2 * channels + c);
    const auto sum = cuda::constants<m>(sums + c),
               product = cuda::constants<m>(sums + channels + c);
    TANDEM_UNROLL
    for (int lane = 0; lane < m; ++lane) {
      const float factor = result.line.factor[lane];
      const float slope = product[lane] * each * scale[lane] * factor;
      result.slope.value[lane] = -slope;
      result.shift.value[lane] = fmaf(slope, low[lane], -(sum[lane] * each) * factor);
    }
    return result;
  }
  template <int n>
  [[nodiscard]] TANDEM_HOST_DEVICE auto read(int64_t i) const {
    return cuda::read_two<n>(dy + i, x + i);
  }
  template <int m, int n>
  [[nodiscard]] TANDEM_HOST_DEVICE float value(const Plane<m>& plane, int group,
                                               const cuda::TwoElements<T, n>& v, int lane) const {
    const float distance = plane.line.distance(v.second[lane], group);
    const float gradient = through_relu<T>(plane.line, group, distance, v.first[lane], fuses_relu);
    if (sums == nullptr) return gradient * plane.line.factor[group];
    return fmaf(gradient, plane.line.factor[group],
                fmaf(distance, plane.slope[group], plane.shift[group]));
  }
  template <int n>
  TANDEM_HOST_DEVICE void write(int64_t i, const cuda::Values<n>& values) const {
    cuda::write(values, dx + i);
  }
  BatchNormScaleLines lines;
  const T *dy, *x;
  const float* sums;
  T* dx;
  bool fuses_relu;
};

// The gradients of the factors and biases. batch_share is nullptr if the sums are those of the rows
// alone. A gradient that is not wanted is nullptr.
struct BatchNormScaleWeights {
  TANDEM_HOST_DEVICE void operator()(int64_t c) const {
    const float share =
        batch_share == nullptr ? 1.0F : BatchNormScale::share_of_rows(*batch_share, share_of_rows);
    give(biases, c, share * sums[c]);
    give(factors, c, share * sums[channels + c]);
  }
  TANDEM_HOST_DEVICE void give(float* target, int64_t c, float value) const {
    if (target != nullptr) target[c] = (accumulate ? target[c] : 0.0F) + value;
  }
  int64_t channels;
  const float *sums, *batch_share;
  float share_of_rows;
  float *factors, *biases;
  bool accumulate;
};

}  // namespace tandem::layers
