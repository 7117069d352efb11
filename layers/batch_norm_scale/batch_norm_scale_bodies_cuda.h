// The device code of BatchNormScale on NVIDIA GPUs. Statistics and coefficients are those of
// BatchNorm: for each channel high, low and scale, of which ((x - high) - low) * scale is the
// normalised value.
#pragma once

#include "layers/batch_norm/batch_norm_bodies_cuda.h"
#include "layers/batch_norm_scale/batch_norm_scale.h"

namespace tandem::layers {

template <class T>
struct BatchNormScaleForward {
  TANDEM_HOST_DEVICE void operator()(int64_t i) const {
    const int64_t c = index.value_of(i);
    const float distance = (cuda::load(x[i]) - coefficients[c]) - coefficients[channels + c];
    const float factor = weight[c] * coefficients[2 * channels + c];
    store_with_relu(distance * factor + bias[c], y[i], fuses_relu);
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
struct BatchNormScaleGradientTerm {
  TANDEM_HOST_DEVICE cuda::Pair operator()(int64_t channel, int64_t k) const {
    const int64_t i = index.index_of(channel, k);
    const auto gradient = static_cast<double>(cuda::load(dy[i]));
    const float distance =
        (cuda::load(x[i]) - coefficients[channel]) - coefficients[channels + channel];
    return {gradient, gradient * static_cast<double>(distance)};
  }
  BroadcastIndex index;
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
  TANDEM_HOST_DEVICE void operator()(int64_t i) const {
    const int64_t c = index.value_of(i);
    const float scale = coefficients[2 * channels + c], factor = weight[c] * scale;
    const float gradient = cuda::load(dy[i]);
    if (sums == nullptr) return cuda::store(gradient * factor, dx[i]);
    const float each = coefficients[3 * channels];
    const float slope = sums[channels + c] * each * scale;
    const float distance = (cuda::load(x[i]) - coefficients[c]) - coefficients[channels + c];
    cuda::store(((gradient - sums[c] * each) - distance * slope) * factor, dx[i]);
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
