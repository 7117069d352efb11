// LayerNorm on NVIDIA GPUs: a team for the channels of each pixel; for the weights, sums over the
// pixels of each channel.
#pragma once

#include <cmath>

#include "layers/common/groups_cuda.h"
#include "layers/layer_norm/layer_norm.h"
#include "plugins/cuda/sums.h"

namespace tandem::layers {

// The indices of a pixel's channels; pixels are counted over all rows.
struct PixelChannels {
  explicit PixelChannels(const tandem_tensor& tensor)
      : channels(tensor.shape.c), pixels(tensor.shape.h * tensor.shape.w) {
    const bool last = tensor.layout == TANDEM_NHWC || pixels == 1;
    pixel_step = last ? channels : 1;
    channel_step = last ? 1 : int64_t{pixels};
  }
  [[nodiscard]] TANDEM_HOST_DEVICE int64_t first(int64_t pixel) const {
    const int64_t row = cuda::quotient(pixel, pixels);
    return row * channels * pixels + (pixel - row * pixels) * pixel_step;
  }

  int64_t channels;
  cuda::Divisor pixels;
  int64_t pixel_step, channel_step;
};

// Saves each pixel's mean and 1 / sqrt(variance + eps).
struct LayerNormForward {
  template <class Team>
  TANDEM_HOST_DEVICE void operator()(const Team& team, int64_t pixel) const {
    const int64_t first = index.first(pixel);
    const auto count = static_cast<double>(index.channels);
    const float* values = x + first;
    const float mean = mean_of(team, values, index.channels, index.channel_step);
    const double squares =
        squared_deviations(team, values, index.channels, index.channel_step, mean);
    const auto factor = static_cast<float>(1 / sqrt(squares / count + eps));
    if (team.rank() == 0) {
      saved[2 * pixel] = mean;
      saved[2 * pixel + 1] = factor;
    }
    for (int64_t c = team.rank(); c < index.channels; c += team.size()) {
      const int64_t i = first + c * index.channel_step;
      const float normalized = (x[i] - mean) * factor;
      y[i] = weight == nullptr ? normalized : normalized * weight[c] + bias[c];
    }
  }
  PixelChannels index;
  double eps;
  const float *x, *weight, *bias;  // weight: nullptr without affine
  float *y, *saved;
};

// See layer_norm_cpu.cpp for the formula.
struct LayerNormBackward {
  template <class Team>
  TANDEM_HOST_DEVICE void operator()(const Team& team, int64_t pixel) const {
    const int64_t first = index.first(pixel);
    const auto count = static_cast<double>(index.channels);
    const float mean = saved[2 * pixel], factor = saved[2 * pixel + 1];
    double sum = 0, products = 0;
    for (int64_t c = team.rank(); c < index.channels; c += team.size()) {
      const int64_t i = first + c * index.channel_step;
      const float h = weighted(i, c);
      sum += static_cast<double>(h);
      products += static_cast<double>(h * ((x[i] - mean) * factor));
    }
    const auto level = static_cast<float>(team.sum(sum) / count);
    const auto projection = static_cast<float>(team.sum(products) / count);
    for (int64_t c = team.rank(); c < index.channels; c += team.size()) {
      const int64_t i = first + c * index.channel_step;
      dx[i] = (weighted(i, c) - level - (x[i] - mean) * factor * projection) * factor;
    }
  }
  [[nodiscard]] TANDEM_HOST_DEVICE float weighted(int64_t i, int64_t c) const {
    return weight == nullptr ? dy[i] : dy[i] * weight[c];
  }
  PixelChannels index;
  const float *x, *dy, *weight, *saved;
  float* dx;
};

// The terms of a channel: for the gradients of its weight and of its bias.
struct LayerNormTerm {
  TANDEM_HOST_DEVICE cuda::Pair operator()(int64_t channel, int64_t pixel) const {
    const int64_t i = index.first(pixel) + channel * index.channel_step;
    const float normalized = (x[i] - saved[2 * pixel]) * saved[2 * pixel + 1];
    return {static_cast<double>(dy[i] * normalized), static_cast<double>(dy[i])};
  }
  PixelChannels index;
  const float *x, *dy, *saved;
};
struct LayerNormStore {
  TANDEM_HOST_DEVICE void operator()(int64_t channel, const cuda::Pair& sums) const {
    dw[channel] = static_cast<float>(sums.first) + (accumulate ? dw[channel] : 0.0F);
    db[channel] = static_cast<float>(sums.second) + (accumulate ? db[channel] : 0.0F);
  }
  float *dw, *db;
  bool accumulate;
};

class LayerNormCuda : public sdk::Needs {
 public:
  LayerNormCuda(const sdk::Binding& binding, const sdk::Call&)
      : places_(binding.input(0)),
        pixels_(binding.input(0).shape.n * places_.pixels),
        eps_(binding.attributes.number("eps")),
        affine_(binding.attributes.boolean("affine")),
        sums_(places_.channels, pixels_, places_.channel_step == 1) {
    saved_bytes = 2 * pixels_ * static_cast<int64_t>(sizeof(float));
    if (affine_) scratch_bytes = sums_.scratch_bytes();
  }

  static sdk::LayoutOptions layouts(const sdk::Binding&) { return cuda::plain_layouts(); }

  void forward(const sdk::Call& call, const sdk::DevicePass& pass) const {
    cuda::for_teams(call, teams(),
                    LayerNormForward{places_, eps_, pass.input(0).get(),
                                     affine_ ? pass.weight(0).get() : nullptr,
                                     affine_ ? pass.weight(1).get() : nullptr, pass.output(0).get(),
                                     pass.saved().get()});
  }
  void backward_data(const sdk::Call& call, const sdk::DevicePass& pass) const {
    cuda::for_teams(call, teams(),
                    LayerNormBackward{places_, pass.input(0).get(), pass.output_gradient(0).get(),
                                      affine_ ? pass.weight(0).get() : nullptr, pass.saved().get(),
                                      pass.input_gradient(0).get()});
  }
  void backward_weights(const sdk::Call& call, const sdk::DevicePass& pass) const {
    sums_.run(call,
              LayerNormTerm{places_, pass.input(0).get(), pass.output_gradient(0).get(),
                            pass.saved().get()},
              pass.scratch<cuda::Pair>().get(),
              LayerNormStore{pass.weight_gradient(0).get(), pass.weight_gradient(1).get(),
                             pass.accumulate()});
  }

 private:
  [[nodiscard]] cuda::Teams teams() const {
    return {pixels_, places_.channels, places_.pixel_step == 1};
  }

  PixelChannels places_;
  int64_t pixels_;
  double eps_;
  bool affine_;
  cuda::GroupSums<cuda::Pair> sums_;
};

}  // namespace tandem::layers
