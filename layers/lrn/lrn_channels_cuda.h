// LRN across channels on NVIDIA GPUs: a thread computes a run of channels of one pixel. It reads
// the channels around them and computes the backward pass from the input and the output's gradient
// alone, so that nothing is saved and each tensor moves through memory once.
#pragma once

#include <cmath>
#include <cstdint>

#include "layers/lrn/lrn.h"
#include "plugins/cuda/indexing.h"
#include "plugins/cuda/teams.h"
#include "plugins/cuda/vectors.h"

namespace tandem::layers {

// 1 / sqrt(s), within two units in the last place.
TANDEM_HOST_DEVICE inline float inverse_root(float s) {
#ifdef __CUDA_ARCH__
  return rsqrtf(s);
#else
  return 1 / sqrtf(s);
#endif
}

// s^-beta. The usual exponent is computed by square roots, which are fast and accurate.
TANDEM_HOST_DEVICE inline float lrn_power(float s, float beta) {
  if (beta != 0.75F) return powf(s, -beta);
  const float root = inverse_root(s);
  return root * sqrtf(root);
}

// 1 / s, likewise. Other exponents may have a negative s, which has no root.
TANDEM_HOST_DEVICE inline float lrn_inverse(float s, float beta) {
  if (beta != 0.75F) return 1 / s;
  const float root = inverse_root(s);
  return root * root;
}

struct LrnFactors {
  float scale, beta, k;  // scale: alpha / n
};

// Where the threads' runs of channels lie. Neighboring threads read neighboring elements: the
// inner number of a thread is in NHWC its run, in NCHW its pixel, and the outer one is the other.
template <int run>
struct ChannelRuns {
  explicit ChannelRuns(const tandem_tensor& tensor)
      : channels(tensor.shape.c),
        pixels(tensor.shape.h * tensor.shape.w),
        is_channels_last(tensor.layout == TANDEM_NHWC) {
    const int64_t runs = (channels + run - 1) / run;
    inner = is_channels_last ? runs : pixels;
    outer = is_channels_last ? pixels : runs;
  }

  [[nodiscard]] int64_t threads(int64_t rows) const {
    return rows * static_cast<int64_t>(inner) * static_cast<int64_t>(outer);
  }
  // Of channel `channel` + k: begin + k * stride.
  struct Place {
    int64_t begin, stride, channel;
  };
  [[nodiscard]] TANDEM_HOST_DEVICE Place place(int64_t thread) const {
    const int64_t line = cuda::quotient(thread, inner), first = thread - line * inner;
    const int64_t row = cuda::quotient(line, outer), second = line - row * outer;
    if (is_channels_last) return {(row * pixels + second) * channels + first * run, 1, first * run};
    return {(row * channels + second * run) * pixels + first, pixels, second * run};
  }

  int64_t channels, pixels;
  bool is_channels_last;
  cuda::Divisor inner, outer;
};

// The values of the channels of a run, and of `edge` channels before and behind it.
template <int run, int edge>
struct ChannelValues {
  template <class T, class Place>
  TANDEM_HOST_DEVICE ChannelValues(const T* x, const Place& at, int64_t channels) {
    TANDEM_UNROLL
    for (int k = -edge; k < run + edge; ++k) {
      const bool is_inside = at.channel + k >= 0 && at.channel + k < channels;
      value[k + edge] = is_inside ? cuda::load(x[at.begin + k * at.stride]) : 0;
    }
  }
  // By whole vectors: the run is one, and the edge is not wider.
  template <class T>
  TANDEM_HOST_DEVICE ChannelValues(const T* x, int64_t begin, int64_t channel, int64_t channels) {
    static_assert(edge <= run);
    cuda::Elements<T, run> parts[3]{};
    if (channel > 0) parts[0] = cuda::read<run>(x + begin - run);
    parts[1] = cuda::read<run>(x + begin);
    if (channel + run < channels) parts[2] = cuda::read<run>(x + begin + run);
    TANDEM_UNROLL
    for (int k = -edge; k < run + edge; ++k) {
      value[k + edge] = k < 0 ? parts[0][k + run] : k < run ? parts[1][k] : parts[2][k - run];
    }
  }
  // Of channel k of the run.
  [[nodiscard]] TANDEM_HOST_DEVICE float operator[](int k) const { return value[k + edge]; }

  float value[run + 2 * edge];
};

// s of channel k of the run.
template <int half, class Values>
TANDEM_HOST_DEVICE inline float lrn_sum(const Values& x, int k, const LrnFactors& factors) {
  float sum = 0;
  TANDEM_UNROLL
  for (int j = k - half; j <= k + half; ++j) sum += x[j] * x[j];
  return factors.k + factors.scale * sum;
}

// `vectors`: NHWC, the channels are whole vectors, and the memory is aligned for them.
template <class T, int half, int run, bool vectors>
struct LrnRunForward {
  TANDEM_HOST_DEVICE void operator()(int64_t thread) const {
    const auto at = runs.place(thread);
    const auto x_values = [&] {
      if constexpr (vectors) {
        return ChannelValues<run, half>(x, at.begin, at.channel, runs.channels);
      } else {
        return ChannelValues<run, half>(x, at, runs.channels);
      }
    }();
    const auto value = [&](int k) {
      return x_values[k] * lrn_power(lrn_sum<half>(x_values, k, factors), factors.beta);
    };
    if constexpr (vectors) {
      cuda::write(cuda::each_lane<run>(value), y + at.begin);
    } else {
      TANDEM_UNROLL
      for (int k = 0; k < run; ++k) {
        if (at.channel + k < runs.channels) cuda::store(value(k), y[at.begin + k * at.stride]);
      }
    }
  }
  ChannelRuns<run> runs;
  LrnFactors factors;
  const T* x;
  T* y;
};

// dx = dy s^-beta - 2 alpha beta / n x T, where T sums dy y / s over the neighbors.
template <class T, int half, int run, bool vectors>
struct LrnRunBackward {
  TANDEM_HOST_DEVICE void operator()(int64_t thread) const {
    const auto at = runs.place(thread);
    if constexpr (vectors) {
      const ChannelValues<run, 2 * half> xs(x, at.begin, at.channel, runs.channels);
      const ChannelValues<run, half> gradients(dy, at.begin, at.channel, runs.channels);
      finish(at, xs, gradients);
    } else {
      const ChannelValues<run, 2 * half> xs(x, at, runs.channels);
      const ChannelValues<run, half> gradients(dy, at, runs.channels);
      finish(at, xs, gradients);
    }
  }

  template <class Place, class Inputs, class Gradients>
  TANDEM_HOST_DEVICE void finish(const Place& at, const Inputs& xs,
                                 const Gradients& gradients) const {
    float powers[run], ratios[run + 2 * half];
    TANDEM_UNROLL
    for (int k = -half; k < run + half; ++k) {
      const float s = lrn_sum<half>(xs, k, factors), power = lrn_power(s, factors.beta);
      // Outside the tensor s may be 0.
      const bool is_inside = at.channel + k >= 0 && at.channel + k < runs.channels;
      ratios[k + half] =
          is_inside ? gradients[k] * (xs[k] * power) * lrn_inverse(s, factors.beta) : 0;
      if (k >= 0 && k < run) powers[k] = power;
    }
    const auto value = [&](int k) {
      float sum = 0;
      TANDEM_UNROLL
      for (int j = k - half; j <= k + half; ++j) sum += ratios[j + half];
      return follows_relu && !(xs[k] > 0) ? 0.0F : gradients[k] * powers[k] - slope * xs[k] * sum;
    };
    if constexpr (vectors) {
      cuda::write(cuda::each_lane<run>(value), dx + at.begin);
    } else {
      TANDEM_UNROLL
      for (int k = 0; k < run; ++k) {
        if (at.channel + k < runs.channels) cuda::store(value(k), dx[at.begin + k * at.stride]);
      }
    }
  }

  ChannelRuns<run> runs;
  LrnFactors factors;
  float slope;  // 2 alpha beta / n
  const T *x, *dy;
  T* dx;
  bool follows_relu;  // whose gradient is applied, too
};

// Starts the two passes for local_size = 2 half + 1.
template <class T, int half>
class LrnChannels {
 public:
  static void forward(const sdk::Call& call, const tandem_tensor& tensor, const LrnFactors& factors,
                      const T* x, T* y) {
    constexpr int run = cuda::elements_at_once<T>;
    if (has_vectors(tensor, x, y)) {
      const ChannelRuns<run> runs(tensor);
      cuda::for_each(call, runs.threads(tensor.shape.n),
                     LrnRunForward<T, half, run, true>{runs, factors, x, y});
    } else {
      const ChannelRuns<long_run> runs(tensor);
      cuda::for_each(call, runs.threads(tensor.shape.n),
                     LrnRunForward<T, half, long_run, false>{runs, factors, x, y});
    }
  }
  static void backward(const sdk::Call& call, const tandem_tensor& tensor,
                       const LrnFactors& factors, const T* x, const T* dy, T* dx,
                       bool follows_relu) {
    constexpr int run = cuda::elements_at_once<T>;
    const float slope = 2 * factors.scale * factors.beta;
    if (has_vectors(tensor, x, dy, dx)) {
      const ChannelRuns<run> runs(tensor);
      cuda::for_each(
          call, runs.threads(tensor.shape.n),
          LrnRunBackward<T, half, run, true>{runs, factors, slope, x, dy, dx, follows_relu});
    } else {
      const ChannelRuns<long_run> runs(tensor);
      cuda::for_each(
          call, runs.threads(tensor.shape.n),
          LrnRunBackward<T, half, long_run, false>{runs, factors, slope, x, dy, dx, follows_relu});
    }
  }

 private:
  // Four more channels are read than written forward, eight backward.
  static constexpr int long_run = 16;

  template <class... Addresses>
  static bool has_vectors(const tandem_tensor& tensor, const Addresses*... addresses) {
    return tensor.layout == TANDEM_NHWC && tensor.shape.c % cuda::elements_at_once<T> == 0 &&
           cuda::are_aligned(addresses...);
  }
};

}  // namespace tandem::layers
