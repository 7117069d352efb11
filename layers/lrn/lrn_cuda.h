// LRN on NVIDIA GPUs: one thread an element, which goes through its neighbours. Forward saves
// s = k + alpha / n S, where S sums the squares of the n neighbours, and y = x s^-beta; backward is
// dx = dy s^-beta - 2 alpha beta / n x T, where T sums dy y / s over them. cuDNN's refuses sizes
// above 16 and small k and beta, which Caffe takes.
#pragma once

#include <cmath>

#include "layers/lrn/lrn.h"
#include "plugins/cuda/places.h"
#include "plugins/cuda/teams.h"

namespace tandem::layers {

// Which elements are near.
struct Neighbourhood {
  cuda::Grid grid;
  bool across;   // channels; else pixels of one channel
  int64_t half;  // of the size, rounded down

  // The sum of value(i) over the neighbours of the element at `index`.
  template <class Value>
  TANDEM_HOST_DEVICE float sum(int64_t index, const Value& value) const {
    cuda::Place place = grid.place(index);
    float result = 0;
    if (across) {
      const int64_t begin = from(place.c), end = to(place.c, grid.channels);
      for (place.c = begin; place.c < end; ++place.c) result += value(grid.index(place));
      return result;
    }
    const int64_t top = from(place.h), bottom = to(place.h, grid.height);
    const int64_t left = from(place.w), right = to(place.w, grid.width);
    for (place.h = top; place.h < bottom; ++place.h) {
      for (place.w = left; place.w < right; ++place.w) result += value(grid.index(place));
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

// s^-beta; with the usual exponent by roots, which are fast and accurate.
TANDEM_HOST_DEVICE inline float lrn_power(float s, float beta) {
  if (beta != 0.75F) return powf(s, -beta);
  const float root = sqrtf(s);
  return 1 / (root * sqrtf(root));
}

struct SquareAt {
  TANDEM_HOST_DEVICE float operator()(int64_t i) const { return x[i] * x[i]; }
  const float* x;
};
struct ValueAt {
  TANDEM_HOST_DEVICE float operator()(int64_t i) const { return x[i]; }
  const float* x;
};

struct LrnForward {
  TANDEM_HOST_DEVICE void operator()(int64_t i) const {
    const float s = k + scale * neighbours.sum(i, SquareAt{x});
    if (saved != nullptr) saved[i] = s;
    y[i] = x[i] * lrn_power(s, beta);
  }
  Neighbourhood neighbours;
  float scale, beta, k;  // scale: alpha / n
  const float* x;
  float *y, *saved;  // saved: nullptr without a backward pass
};

// dy y / s
struct LrnRatio {
  TANDEM_HOST_DEVICE void operator()(int64_t i) const {
    ratios[i] = dy[i] * (x[i] * lrn_power(saved[i], beta)) / saved[i];
  }
  float beta;
  const float *x, *dy, *saved;
  float* ratios;
};

struct LrnBackward {
  TANDEM_HOST_DEVICE void operator()(int64_t i) const {
    const float sum = neighbours.sum(i, ValueAt{ratios});
    dx[i] = dy[i] * lrn_power(saved[i], beta) - factor * x[i] * sum;
  }
  Neighbourhood neighbours;
  float factor, beta;  // factor: 2 alpha beta / n
  const float *x, *dy, *saved, *ratios;
  float* dx;
};

class LrnCuda : public sdk::Needs {
 public:
  LrnCuda(const sdk::Binding& binding, const sdk::Call&)
      : neighbours_{cuda::Grid(binding.input(0)),
                    binding.attributes.text("norm_region") == "ACROSS_CHANNELS",
                    (binding.attributes.integer("local_size") - 1) / 2},
        elements_(sdk::count(binding.input(0).shape)),
        beta_(static_cast<float>(binding.attributes.number("beta"))),
        k_(neighbours_.across ? static_cast<float>(binding.attributes.number("k")) : 1) {
    const auto size = static_cast<double>(binding.attributes.integer("local_size"));
    const double count = neighbours_.across ? size : size * size;
    scale_ = static_cast<float>(binding.attributes.number("alpha") / count);
    if (!binding.has(TANDEM_WANTS_BACKWARD_DATA)) return;
    saved_bytes = elements_ * static_cast<int64_t>(sizeof(float));
    scratch_bytes = saved_bytes;
  }

  static sdk::LayoutOptions layouts(const sdk::Binding&) { return cuda::plain_layouts(); }

  void forward(const sdk::Call& call, const sdk::Pass& pass) const {
    cuda::for_each(call, elements_,
                   LrnForward{neighbours_, scale_, beta_, k_, pass.input(0), pass.output(0),
                              saved_bytes > 0 ? pass.saved() : nullptr});
  }

  void backward_data(const sdk::Call& call, const sdk::Pass& pass) const {
    const float *x = pass.input(0), *dy = pass.output_gradient(0), *saved = pass.saved();
    cuda::for_each(call, elements_, LrnRatio{beta_, x, dy, saved, pass.scratch()});
    cuda::for_each(call, elements_,
                   LrnBackward{neighbours_, 2 * scale_ * beta_, beta_, x, dy, saved, pass.scratch(),
                               pass.input_gradient(0)});
  }

 private:
  Neighbourhood neighbours_;
  int64_t elements_;
  float beta_, k_, scale_ = 0;
};

}  // namespace tandem::layers
