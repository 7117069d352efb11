// The device code of BatchNormScale on NVIDIA GPUs. Statistics and coefficients are those of
// BatchNorm: for each channel high, low and scale, of which ((x - high) - low) * scale is the
// normalised value.
#pragma once

#include "layers/batch_norm/batch_norm_bodies_cuda.h"
#include "layers/batch_norm_scale/batch_norm_scale.h"

namespace tandem::layers {

template <class T>
struct BatchNormScaleForward {
  static constexpr int at_once = cuda::elements_at_once<T>;
  [[nodiscard]] bool can_vectorize() const {
    return cuda::are_aligned(x, y) && index.has_lanes(at_once, coefficients, weight, bias);
  }
  template <int n>
  [[nodiscard]] TANDEM_HOST_DEVICE auto read(int64_t i) const {
    return cuda::read<n>(x + i);
  }
  template <int n>
  TANDEM_HOST_DEVICE void write(int64_t i, const cuda::Elements<T, n>& v) const {
    const ValueLanes lanes = index.lanes_of<n>(i);
    const auto high = index.take<n>(coefficients, lanes);
    const auto low = index.take<n>(coefficients + channels, lanes);
    const auto scale = index.take<n>(coefficients + 2 * channels, lanes);
    const auto weights = index.take<n>(weight, lanes), biases = index.take<n>(bias, lanes);
    const auto value = [&](int lane) {
      const float distance = (v[lane] - high[lane]) - low[lane];
      return distance * (weights[lane] * scale[lane]) + biases[lane];
    };
    write_with_relu(cuda::each_lane<n>(value), y + i, fuses_relu);
  }
  BroadcastIndex index;
  int64_t channels;
  const T* x;
  const float *coefficients, *weight, *bias;
  T* y;
  bool fuses_relu;
};

// Terms of the sums of dy and of dy * (x - mean).
template <class T>
struct BatchNormScaleGradientTerms {
  using Element = T;
  static constexpr int ahead = 2;
  [[nodiscard]] bool are_aligned() const { return cuda::are_aligned(dy, x); }
  template <int m>
  struct Mean {
    cuda::Values<m> high, low;
  };
  template <int m>
  [[nodiscard]] TANDEM_HOST_DEVICE Mean<m> groups(int64_t channel) const {
    const float* mean = coefficients + channel;
    return {cuda::each_lane<m>([&](int lane) { return mean[lane]; }),
            cuda::each_lane<m>([&](int lane) { return mean[channels + lane]; })};
  }
  template <int n, bool aligned>
  [[nodiscard]] TANDEM_HOST_DEVICE auto read(int64_t i) const {
    return cuda::read_two<n, aligned>(dy + i, x + i);
  }
  template <int m, int n>
  [[nodiscard]] TANDEM_HOST_DEVICE cuda::FloatPair value(const Mean<m>& mean, int group,
                                                         const cuda::TwoElements<T, n>& v,
                                                         int lane) const {
    const float distance = (v.second[lane] - mean.high[group]) - mean.low[group];
    return {v.first[lane], v.first[lane] * distance};
  }
  int64_t channels;
  const T *dy, *x;
  const float* coefficients;
};
struct BatchNormScaleStoreGradients {
  TANDEM_HOST_DEVICE void operator()(int64_t channel, const cuda::Pair& sums) const {
    const auto scale = static_cast<double>(coefficients[2 * channels + channel]);
    target[channel] = static_cast<float>(sums.first);
    target[channels + channel] = static_cast<float>(sums.second * scale);
  }
  int64_t channels;
  const float* coefficients;
  float* target;
};

// dx = (dy - mean(dy) - x' * mean(dy * x')) * weight * scale. sums is nullptr with running
// statistics, which do not depend on x. coefficients[3 * channels] is 1 / the number of values of a
// channel in the batch.
template <class T>
struct BatchNormScaleBackward {
  static constexpr int at_once = cuda::elements_at_once<T>;
  [[nodiscard]] bool can_vectorize() const {
    return cuda::are_aligned(dy, x, dx) && index.has_lanes(at_once, coefficients, weight, sums);
  }
  template <int n>
  [[nodiscard]] TANDEM_HOST_DEVICE auto read(int64_t i) const {
    return cuda::read_two<n>(dy + i, x + i);
  }
  template <int n>
  TANDEM_HOST_DEVICE void write(int64_t i, const cuda::TwoElements<T, n>& v) const {
    const ValueLanes lanes = index.lanes_of<n>(i);
    const auto scale = index.take<n>(coefficients + 2 * channels, lanes);
    const auto weights = index.take<n>(weight, lanes);
    if (sums == nullptr) {
      const auto value = [&](int lane) { return v.first[lane] * (weights[lane] * scale[lane]); };
      return cuda::write(cuda::each_lane<n>(value), dx + i);
    }
    const auto high = index.take<n>(coefficients, lanes);
    const auto low = index.take<n>(coefficients + channels, lanes);
    const auto sum = index.take<n>(sums, lanes), product = index.take<n>(sums + channels, lanes);
    const float each = coefficients[3 * channels];
    const auto value = [&](int lane) {
      const float slope = product[lane] * each * scale[lane];
      const float distance = (v.second[lane] - high[lane]) - low[lane];
      return ((v.first[lane] - sum[lane] * each) - distance * slope) *
             (weights[lane] * scale[lane]);
    };
    cuda::write(cuda::each_lane<n>(value), dx + i);
  }
  BroadcastIndex index;
  int64_t channels;
  const T *dy, *x;
  const float *coefficients, *weight, *sums;
  T* dx;
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
