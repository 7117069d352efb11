// LRN on NVIDIA GPUs. Across the usual 3 or 5 channels: lrn_channels_cuda.h. Otherwise one thread
// per element, which loops over its neighbors: forward saves s = k
// + alpha / n S, where S is the sum of the squares of the n neighbors, and y = x s^-beta; backward
// is dx = dy s^-beta - 2 alpha beta / n x T, where T sums dy y / s over them. cuDNN's LRN refuses
// sizes above 16 and small k and beta, which Caffe accepts.
#pragma once

#include <type_traits>

#include "layers/lrn/lrn_channels_cuda.h"
#include "plugins/cuda/elements.h"
#include "plugins/cuda/indexing.h"
#include "plugins/cuda/teams.h"

namespace tandem::layers {

// The neighbors of an element.
struct Neighborhood {
  cuda::TensorIndex grid;
  bool across;   // neighbors are channels, else pixels of one channel
  int64_t half;  // half of the size, rounded down

  // The sum of value(i) over the neighbors of the element at `index`.
  template <class Value>
  TANDEM_HOST_DEVICE float sum(int64_t index, const Value& value) const {
    cuda::Position position = grid.position(index);
    float result = 0;
    if (across) {
      const int64_t begin = from(position.c), end = to(position.c, grid.channels);
      for (position.c = begin; position.c < end; ++position.c)
        result += value(grid.index(position));
      return result;
    }
    const int64_t top = from(position.h), bottom = to(position.h, grid.height);
    const int64_t left = from(position.w), right = to(position.w, grid.width);
    for (position.h = top; position.h < bottom; ++position.h) {
      for (position.w = left; position.w < right; ++position.w)
        result += value(grid.index(position));
    }
    return result;
  }

 private:
  [[nodiscard]] TANDEM_HOST_DEVICE int64_t from(int64_t at) const {
    return at < half ? 0 : at - half;
  }
  [[nodiscard]] TANDEM_HOST_DEVICE int64_t to(int64_t at, int64_t extent) const {
    return at + half < extent ? at + half + 1 : extent;
  }
};

template <class T>
struct SquareAt {
  TANDEM_HOST_DEVICE float operator()(int64_t i) const {
    const float value = cuda::load(x[i]);
    return value * value;
  }
  const T* x;
};
struct ValueAt {
  TANDEM_HOST_DEVICE float operator()(int64_t i) const { return x[i]; }
  const float* x;
};

template <class T>
struct LrnForward {
  TANDEM_HOST_DEVICE void operator()(int64_t i) const {
    const float s = k + scale * neighbors.sum(i, SquareAt<T>{x});
    if (saved != nullptr) saved[i] = s;
    cuda::store(cuda::load(x[i]) * lrn_power(s, beta), y[i]);
  }
  Neighborhood neighbors;
  float scale, beta, k;  // scale: alpha / n
  const T* x;
  T* y;
  float* saved;  // nullptr without a backward pass
};

// dy y / s
template <class T>
struct LrnRatio {
  TANDEM_HOST_DEVICE void operator()(int64_t i) const {
    const float y = cuda::load(x[i]) * lrn_power(saved[i], beta);
    ratios[i] = cuda::load(dy[i]) * y / saved[i];
  }
  float beta;
  const T *x, *dy;
  const float* saved;
  float* ratios;
};

template <class T>
struct LrnBackward {
  TANDEM_HOST_DEVICE void operator()(int64_t i) const {
    const float sum = neighbors.sum(i, ValueAt{ratios}), value = cuda::load(x[i]);
    const float gradient = cuda::load(dy[i]) * lrn_power(saved[i], beta) - factor * value * sum;
    cuda::store(follows_relu && !(value > 0) ? 0.0F : gradient, dx[i]);
  }
  Neighborhood neighbors;
  float factor, beta;  // factor: 2 alpha beta / n
  const T *x, *dy;
  const float *saved, *ratios;
  T* dx;
  bool follows_relu;  // whose gradient is applied, too
};

class LrnCuda : public sdk::Needs {
 public:
  LrnCuda(const sdk::Binding& binding, const sdk::Call&)
      : tensor_(binding.input(0)),
        neighbors_{cuda::TensorIndex(tensor_),
                   binding.attributes.text("norm_region") == "ACROSS_CHANNELS",
                   (binding.attributes.integer("local_size") - 1) / 2},
        elements_(sdk::count(tensor_.shape)),
        follows_relu_(binding.follows_relu()) {
    const auto size = static_cast<double>(binding.attributes.integer("local_size"));
    const double count = neighbors_.across ? size : size * size;
    factors_ = {static_cast<float>(binding.attributes.number("alpha") / count),
                static_cast<float>(binding.attributes.number("beta")),
                neighbors_.across ? static_cast<float>(binding.attributes.number("k")) : 1};
    if (!binding.has(TANDEM_WANTS_BACKWARD_DATA) || is_usual()) return;
    saved_bytes = elements_ * static_cast<int64_t>(sizeof(float));
    scratch_bytes = saved_bytes;
  }

  static constexpr uint32_t dtypes = cuda::all_dtypes;
  static constexpr uint32_t gradients_before = sdk::relu_only;

  static sdk::LayoutOptions layouts(const sdk::Binding&) { return cuda::plain_layouts(); }

  void forward(const sdk::Call& call, const sdk::DevicePass& pass) const {
    cuda::with_elements(tensor_.dtype, [&](auto element) {
      using T = decltype(element);
      const T* x = pass.input<T>(0).get();
      T* y = pass.output<T>(0).get();
      if (is_usual()) {
        with_half(
            [&](auto half) { LrnChannels<T, half()>::forward(call, tensor_, factors_, x, y); });
        return;
      }
      const auto& [scale, beta, k] = factors_;
      cuda::for_each(call, elements_,
                     LrnForward<T>{neighbors_, scale, beta, k, x, y,
                                   saved_bytes > 0 ? pass.saved().get() : nullptr});
    });
  }

  void backward_data(const sdk::Call& call, const sdk::DevicePass& pass) const {
    cuda::with_elements(tensor_.dtype, [&](auto element) {
      using T = decltype(element);
      const T *x = pass.input<T>(0).get(), *dy = pass.output_gradient<T>(0).get();
      T* dx = pass.input_gradient<T>(0).get();
      if (is_usual()) {
        with_half([&](auto half) {
          LrnChannels<T, half()>::backward(call, tensor_, factors_, x, dy, dx, follows_relu_);
        });
        return;
      }
      const auto& [scale, beta, k] = factors_;
      const float* saved = pass.saved().get();
      float* ratios = pass.scratch().get();
      cuda::for_each(call, elements_, LrnRatio<T>{beta, x, dy, saved, ratios});
      cuda::for_each(call, elements_,
                     LrnBackward<T>{neighbors_, 2 * scale * beta, beta, x, dy, saved, ratios, dx,
                                    follows_relu_});
    });
  }

 private:
  [[nodiscard]] bool is_usual() const {
    return neighbors_.across && (neighbors_.half == 1 || neighbors_.half == 2);
  }
  template <class Body>
  void with_half(const Body& body) const {
    if (neighbors_.half == 1) {
      body(std::integral_constant<int, 1>());
    } else {
      body(std::integral_constant<int, 2>());
    }
  }

  tandem_tensor tensor_;
  Neighborhood neighbors_;
  int64_t elements_;
  bool follows_relu_;
  LrnFactors factors_{};
};

}  // namespace tandem::layers
