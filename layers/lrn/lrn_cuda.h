// LRN on NVIDIA GPUs: one thread per element, which loops over its neighbours. Forward saves s = k
// + alpha / n S, where S is the sum of the squares of the n neighbours, and y = x s^-beta; backward
// is dx = dy s^-beta - 2 alpha beta / n x T, where T sums dy y / s over them. cuDNN's LRN refuses
// sizes above 16 and small k and beta, which Caffe accepts. The usual size has kernels of its own
// (usual_lrn_cuda.h).
#pragma once

#include <cmath>

#include "layers/lrn/lrn.h"
#include "layers/lrn/usual_lrn_cuda.h"
#include "plugins/cuda/elements.h"
#include "plugins/cuda/indexing.h"
#include "plugins/cuda/teams.h"

namespace tandem::layers {

// The neighbours of an element.
struct Neighbourhood {
  cuda::TensorIndex grid;
  bool across;   // neighbours are channels, else pixels of one channel
  int64_t half;  // half of the size, rounded down

  // The sum of value(i) over the neighbours of the element at `index`.
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

// s^-beta. The usual exponent is computed by square roots, which are fast and accurate.
TANDEM_HOST_DEVICE inline float lrn_power(float s, float beta) {
  if (beta != 0.75F) return powf(s, -beta);
  const float root = sqrtf(s);
  return 1 / (root * sqrtf(root));
}

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
    const float s = k + scale * neighbours.sum(i, SquareAt<T>{x});
    if (saved != nullptr) saved[i] = s;
    cuda::store(cuda::load(x[i]) * lrn_power(s, beta), y[i]);
  }
  Neighbourhood neighbours;
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
    const float sum = neighbours.sum(i, ValueAt{ratios});
    cuda::store(cuda::load(dy[i]) * lrn_power(saved[i], beta) - factor * cuda::load(x[i]) * sum,
                dx[i]);
  }
  Neighbourhood neighbours;
  float factor, beta;  // factor: 2 alpha beta / n
  const T *x, *dy;
  const float *saved, *ratios;
  T* dx;
};

class LrnCuda : public sdk::Needs {
 public:
  LrnCuda(const sdk::Binding& binding, const sdk::Call&)
      : neighbours_{cuda::TensorIndex(binding.input(0)),
                    binding.attributes.text("norm_region") == "ACROSS_CHANNELS",
                    (binding.attributes.integer("local_size") - 1) / 2},
        elements_(sdk::count(binding.input(0).shape)),
        beta_(static_cast<float>(binding.attributes.number("beta"))),
        dtype_(binding.input(0).dtype),
        k_(neighbours_.across ? static_cast<float>(binding.attributes.number("k")) : 1) {
    const auto size = static_cast<double>(binding.attributes.integer("local_size"));
    const double count = neighbours_.across ? size : size * size;
    scale_ = static_cast<float>(binding.attributes.number("alpha") / count);
    usual_ = UsualLrn(binding.input(0), {scale_, beta_, k_}, neighbours_.across,
                      2 * neighbours_.half + 1);
    if (usual_.is_possible() || !binding.has(TANDEM_WANTS_BACKWARD_DATA)) return;
    saved_bytes = elements_ * static_cast<int64_t>(sizeof(float));
    scratch_bytes = saved_bytes;
  }

  static constexpr uint32_t dtypes = cuda::all_dtypes;

  static sdk::LayoutOptions layouts(const sdk::Binding&) { return cuda::plain_layouts(); }

  void forward(const sdk::Call& call, const sdk::DevicePass& pass) const {
    cuda::with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      if (usual_.is_possible()) {
        return usual_.forward(call, pass.input<T>(0).get(), pass.output<T>(0).get());
      }
      cuda::for_each(
          call, elements_,
          LrnForward<T>{neighbours_, scale_, beta_, k_, pass.input<T>(0).get(),
                        pass.output<T>(0).get(), saved_bytes > 0 ? pass.saved().get() : nullptr});
    });
  }

  void backward_data(const sdk::Call& call, const sdk::DevicePass& pass) const {
    cuda::with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      const T *x = pass.input<T>(0).get(), *dy = pass.output_gradient<T>(0).get();
      if (usual_.is_possible()) {
        return usual_.backward(call, x, dy, pass.input_gradient<T>(0).get());
      }
      const float* saved = pass.saved().get();
      cuda::for_each(call, elements_, LrnRatio<T>{beta_, x, dy, saved, pass.scratch().get()});
      cuda::for_each(call, elements_,
                     LrnBackward<T>{neighbours_, 2 * scale_ * beta_, beta_, x, dy, saved,
                                    pass.scratch().get(), pass.input_gradient<T>(0).get()});
    });
  }

 private:
  Neighbourhood neighbours_;
  UsualLrn usual_;
  int64_t elements_;
  float beta_;
  int32_t dtype_;
  float k_, scale_ = 0;
};

}  // namespace tandem::layers
