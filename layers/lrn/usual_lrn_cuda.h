// LRN across five channels, the usual size, on NVIDIA GPUs, near the speed of the memory: nothing
// is saved, since computing s again takes less time than reading it, and each pass is one kernel.
// Where channels are last, a thread processes neighbouring channels together; else it walks along
// the channels of a pixel. See lrn_cuda.h for the formula.
#pragma once

#include <cmath>
#include <cstdint>

#include "plugins/cuda/elements.h"
#include "plugins/cuda/indexing.h"
#include "plugins/cuda/teams.h"
#include "plugins/cuda/vectors.h"

namespace tandem::layers {

// 1 / sqrt(s), by one instruction on a GPU and with an error of at most 2^-22.
TANDEM_HOST_DEVICE inline float reciprocal_root(float s) {
#ifdef __CUDA_ARCH__
  return rsqrtf(s);
#else
  return 1 / sqrtf(s);
#endif
}

struct LrnPowers {
  float power, reciprocal;  // s^-beta and 1 / s
};

struct LrnFormula {
  float scale, beta, k;  // scale: alpha / n
  [[nodiscard]] TANDEM_HOST_DEVICE LrnPowers powers(float s) const {
    if (beta != 0.75F) return {powf(s, -beta), 1 / s};
    const float root = reciprocal_root(s), reciprocal = root * root;
    return {reciprocal * reciprocal_root(root), reciprocal};
  }
  // s of the middle one of five channels.
  [[nodiscard]] TANDEM_HOST_DEVICE float s(float a, float b, float c, float d, float e) const {
    return k + scale * ((((a * a + b * b) + c * c) + d * d) + e * e);
  }
  [[nodiscard]] TANDEM_HOST_DEVICE float factor() const { return 2 * scale * beta; }
};

// The elements of n channels and of as many on either side; 0 where there are none.
template <int n, bool aligned, class T>
TANDEM_HOST_DEVICE cuda::Values<3 * n> read_around(const T* channels, int first, int count) {
  const cuda::Elements<T, n> none{};
  const auto own = cuda::read<n, aligned>(channels + first);
  const auto before = first >= n ? cuda::read<n, aligned>(channels + first - n) : none;
  const auto after = first + n < count ? cuda::read<n, aligned>(channels + first + n) : none;
  return cuda::each_lane<3 * n>([&](int lane) {
    return lane < n ? before[lane] : lane < 2 * n ? own[lane - n] : after[lane - 2 * n];
  });
}

// Channels last, n at a time; n divides their number and is at least 4.
template <class T, int n, bool aligned>
struct LrnOfChannelsForward {
  TANDEM_HOST_DEVICE void operator()(int64_t i) const {
    const int64_t pixel = cuda::quotient(i, vectors);
    const int first = static_cast<int>(i - pixel * vectors) * n;
    const auto own = read_around<n, aligned>(x + pixel * channels, first, channels);
    const auto value = [&](int lane) {
      const int c = n + lane;
      const float s = formula.s(own[c - 2], own[c - 1], own[c], own[c + 1], own[c + 2]);
      return own[c] * formula.powers(s).power;
    };
    cuda::write_to<aligned>(y + i * n, cuda::each_lane<n>(value));
  }
  LrnFormula formula;
  cuda::Divisor vectors;
  int channels;
  const T* x;
  T* y;
};

template <class T, int n, bool aligned>
struct LrnOfChannelsBackward {
  TANDEM_HOST_DEVICE void operator()(int64_t i) const {
    const int64_t pixel = cuda::quotient(i, vectors);
    const int first = static_cast<int>(i - pixel * vectors) * n;
    const auto own = read_around<n, aligned>(x + pixel * channels, first, channels);
    const auto gradient = read_around<n, aligned>(dy + pixel * channels, first, channels);
    float products[n];  // dy s^-beta
    // dy y / s; that of channel c is ratios[c - (n - 2)].
    const auto ratios = cuda::each_lane<n + 4>([&](int lane) {
      const int c = n - 2 + lane;
      const float s = formula.s(own[c - 2], own[c - 1], own[c], own[c + 1], own[c + 2]);
      const LrnPowers of = formula.powers(s);
      if (lane >= 2 && lane < n + 2) products[lane - 2] = gradient[c] * of.power;
      return gradient[c] * (own[c] * of.power) * of.reciprocal;
    });
    const auto value = [&](int lane) {
      const float sum =
          (((ratios[lane] + ratios[lane + 1]) + ratios[lane + 2]) + ratios[lane + 3]) +
          ratios[lane + 4];
      return products[lane] - formula.factor() * own[n + lane] * sum;
    };
    cuda::write_to<aligned>(dx + i * n, cuda::each_lane<n>(value));
  }
  LrnFormula formula;
  cuda::Divisor vectors;
  int channels;
  const T *x, *dy;
  T* dx;
};

// Where the walk along the channels of a pixel begins and ends; the channels lie `pixels` apart.
struct LrnWalk {
  static constexpr int length = 32;  // channels of a thread

  LrnWalk(const tandem_shape& shape)
      : pixels(shape.h * shape.w),
        parts((shape.c + length - 1) / length),
        channels(static_cast<int>(shape.c)) {}

  struct Place {
    int64_t base;  // the index of the pixel's channel 0
    int begin, end;
  };
  [[nodiscard]] TANDEM_HOST_DEVICE Place place(int64_t i) const {
    const int64_t line = cuda::quotient(i, pixels), image = cuda::quotient(line, parts);
    const int begin = static_cast<int>(line - image * parts) * length;
    return {image * channels * pixels + (i - line * pixels), begin,
            begin + length < channels ? begin + length : channels};
  }
  template <class T>
  [[nodiscard]] TANDEM_HOST_DEVICE float load(const T* x, const Place& p, int channel) const {
    return channel >= 0 && channel < channels ? cuda::load(x[p.base + channel * pixels]) : 0.0F;
  }

  cuda::Divisor pixels, parts;
  int channels;
};

// Shifts the values and appends one.
template <int n>
TANDEM_HOST_DEVICE void append(float value, float (&values)[n]) {
  TANDEM_UNROLL
  for (int i = 0; i + 1 < n; ++i) values[i] = values[i + 1];
  values[n - 1] = value;
}

template <class T>
struct LrnOfPixelsForward {
  TANDEM_HOST_DEVICE void operator()(int64_t i) const {
    const LrnWalk::Place at = walk.place(i);
    float own[5];  // around the channel
    for (int k = 0; k < 5; ++k) own[k] = walk.load(x, at, at.begin - 3 + k);
    for (int c = at.begin; c < at.end; ++c) {
      append(walk.load(x, at, c + 2), own);
      const float s = formula.s(own[0], own[1], own[2], own[3], own[4]);
      cuda::store(own[2] * formula.powers(s).power, y[at.base + c * walk.pixels]);
    }
  }
  LrnFormula formula;
  LrnWalk walk;
  const T* x;
  T* y;
};

template <class T>
struct LrnOfPixelsBackward {
  TANDEM_HOST_DEVICE void operator()(int64_t i) const {
    const LrnWalk::Place at = walk.place(i);
    float own[5], products[3] = {}, ratios[5] = {};  // products: dy s^-beta; ratios: dy y / s
    for (int k = 0; k < 5; ++k) own[k] = walk.load(x, at, at.begin - 5 + k);
    for (int c = at.begin - 2; c < at.end + 2; ++c) {
      append(walk.load(x, at, c + 2), own);
      const LrnPowers of = formula.powers(formula.s(own[0], own[1], own[2], own[3], own[4]));
      const float gradient = walk.load(dy, at, c);  // 0 where there is no channel
      append(gradient * of.power, products);
      append(gradient * (own[2] * of.power) * of.reciprocal, ratios);
      if (c < at.begin + 2) continue;
      const float sum = (((ratios[0] + ratios[1]) + ratios[2]) + ratios[3]) + ratios[4];
      cuda::store(products[0] - formula.factor() * own[0] * sum,
                  dx[at.base + (c - 2) * walk.pixels]);
    }
  }
  LrnFormula formula;
  LrnWalk walk;
  const T *x, *dy;
  T* dx;
};

// The launches.
class UsualLrn {
 public:
  UsualLrn() = default;
  UsualLrn(const tandem_tensor& tensor, const LrnFormula& formula, bool across, int64_t size)
      : tensor_(tensor), formula_(formula) {
    const bool walks = tensor.layout == TANDEM_NCHW;
    const int at_once = tensor.dtype == TANDEM_FLOAT32 ? 4 : 8;
    is_possible_ = across && size == 5 && (walks || tensor.shape.c % at_once == 0) &&
                   tensor.shape.c < INT32_MAX / 2;
  }
  [[nodiscard]] bool is_possible() const { return is_possible_; }

  template <class T>
  void forward(const sdk::Call& call, const T* x, T* y) const {
    if (tensor_.layout == TANDEM_NCHW) {
      return cuda::for_each(call, walks(), LrnOfPixelsForward<T>{formula_, tensor_.shape, x, y});
    }
    constexpr int n = cuda::elements_at_once<T>;
    const int64_t vectors = tensor_.shape.c / n, count = sdk::count(tensor_.shape) / n;
    const int channels = static_cast<int>(tensor_.shape.c);
    if (cuda::are_aligned(x, y)) {
      cuda::for_each(call, count,
                     LrnOfChannelsForward<T, n, true>{formula_, vectors, channels, x, y});
    } else {
      cuda::for_each(call, count,
                     LrnOfChannelsForward<T, n, false>{formula_, vectors, channels, x, y});
    }
  }
  template <class T>
  void backward(const sdk::Call& call, const T* x, const T* dy, T* dx) const {
    if (tensor_.layout == TANDEM_NCHW) {
      return cuda::for_each(call, walks(),
                            LrnOfPixelsBackward<T>{formula_, tensor_.shape, x, dy, dx});
    }
    constexpr int n = cuda::elements_at_once<T>;
    const int64_t vectors = tensor_.shape.c / n, count = sdk::count(tensor_.shape) / n;
    const int channels = static_cast<int>(tensor_.shape.c);
    if (cuda::are_aligned(x, dy, dx)) {
      cuda::for_each(call, count,
                     LrnOfChannelsBackward<T, n, true>{formula_, vectors, channels, x, dy, dx});
    } else {
      cuda::for_each(call, count,
                     LrnOfChannelsBackward<T, n, false>{formula_, vectors, channels, x, dy, dx});
    }
  }

 private:
  [[nodiscard]] int64_t walks() const {
    const tandem_shape& s = tensor_.shape;
    return s.n * LrnWalk(s).parts * s.h * s.w;
  }
  tandem_tensor tensor_{};
  LrnFormula formula_{};
  bool is_possible_ = false;
};

}  // namespace tandem::layers
