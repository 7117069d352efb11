// Pooling on NVIDIA GPUs: one thread per output; backward one per input, which adds the windows
// that contain it in their order, so that no atomic operations are needed. Small windows have their
// own kernels (small_windows_cuda.h); large ones, such as a whole image, have a team. cuDNN's
// pooling supports neither windows that extend beyond the padding nor, for all shapes, a
// deterministic backward pass of the maximum.
#pragma once

#include <cmath>

#include "layers/pooling/pooling.h"
#include "layers/pooling/small_windows_cuda.h"
#include "plugins/cuda/elements.h"
#include "plugins/cuda/indexing.h"
#include "plugins/cuda/teams.h"

namespace tandem::layers {

// One axis of the windows.
struct PoolingAxis {
  int64_t extent, windows, kernel;
  cuda::Divisor stride;
  int64_t pad;
  bool counts_padding;

  struct Range {
    int64_t begin, end;
  };
  // The part of window `window` inside the image.
  [[nodiscard]] TANDEM_HOST_DEVICE Range inside(int64_t window) const {
    const int64_t begin = window * stride - pad, end = begin + kernel;
    return {begin < 0 ? 0 : begin, end < extent ? end : extent};
  }
  // The length of its part inside the padded image, or the image, where padding does not count.
  [[nodiscard]] TANDEM_HOST_DEVICE int64_t padded_length(int64_t window) const {
    if (!counts_padding) {
      const Range part = inside(window);
      return part.end - part.begin;
    }
    const int64_t begin = window * stride - pad, end = begin + kernel;
    return (end < extent + pad ? end : extent + pad) - begin;
  }
  // The windows that contain pixel `pixel`.
  [[nodiscard]] TANDEM_HOST_DEVICE Range windows_of(int64_t pixel) const {
    const int64_t place = pixel + pad;  // at least 0
    const int64_t begin = place < kernel ? 0 : cuda::quotient(place - kernel, stride) + 1;
    const int64_t end = cuda::quotient(place, stride) + 1;
    return {begin, end < windows ? end : windows};
  }
};

struct PoolingGeometry {
  PoolingGeometry(const sdk::Binding& binding, const Window& window, bool counts_padding)
      : input(binding.input(0)),
        output(binding.output(0)),
        h{input.height,    output.height, window.kernel.h,
          window.stride.h, window.pad.h,  counts_padding},
        w{input.width,     output.width, window.kernel.w,
          window.stride.w, window.pad.w, counts_padding} {}

  cuda::TensorIndex input, output;
  PoolingAxis h, w;
};

// The pixels of a window inside the image.
struct PoolingWindow {
  TANDEM_HOST_DEVICE PoolingWindow(const PoolingGeometry& geometry, const cuda::Position& output)
      : h(geometry.h.inside(output.h)), w(geometry.w.inside(output.w)) {}
  [[nodiscard]] TANDEM_HOST_DEVICE int64_t count() const {
    return (h.end - h.begin) * (w.end - w.begin);
  }
  // Pixel number `k` of the window, in the channel of `output`.
  [[nodiscard]] TANDEM_HOST_DEVICE cuda::Position pixel(const cuda::Position& output,
                                                        int64_t k) const {
    const int64_t width = w.end - w.begin, row = cuda::quotient(k, width);
    return {output.n, output.c, h.begin + row, w.begin + (k - row * width)};
  }
  PoolingAxis::Range h, w;
};

// A value and its pixel. In the order, a NaN precedes all numbers, and of equal values the first
// pixel's precedes.
struct PooledValue {
  float value;
  int32_t pixel;  // h * width + w; -1: none

  [[nodiscard]] TANDEM_HOST_DEVICE bool before(const PooledValue& other) const {
    if (other.pixel < 0) return true;
    const bool number = value == value, other_number = other.value == other.value;
    if (number != other_number) return !number;
    if (number && value != other.value) return value > other.value;
    return pixel < other.pixel;
  }
};
struct LargerPooled {
  TANDEM_HOST_DEVICE PooledValue operator()(const PooledValue& a, const PooledValue& b) const {
    if (a.pixel < 0 || b.pixel < 0) return a.pixel < 0 ? b : a;
    return a.before(b) ? a : b;
  }
};

template <class T>
struct MaximumPooling {
  template <class Team>
  TANDEM_HOST_DEVICE void operator()(const Team& team, int64_t i) const {
    const cuda::Position output = geometry.output.position(i);
    const PoolingWindow window(geometry, output);
    PooledValue best{0, -1};
    for (int64_t k = team.rank(); k < window.count(); k += team.size()) {
      const cuda::Position pixel = window.pixel(output, k);
      const PooledValue here{cuda::load(x[geometry.input.index(pixel)]),
                             static_cast<int32_t>(pixel.h * geometry.input.width + pixel.w)};
      best = LargerPooled()(best, here);
    }
    best = team.combine(best, LargerPooled());
    if (team.rank() != 0) return;
    cuda::store(best.value, y[i]);
    if (pixels != nullptr) pixels[i] = follows_relu && !(best.value > 0) ? -1 : best.pixel;
  }
  PoolingGeometry geometry;
  const T* x;
  T* y;
  int32_t* pixels;    // the pixel of the maximum; nullptr without a backward pass
  bool follows_relu;  // then a maximum that is not above zero has no gradient, and no pixel
};

template <class T>
struct AveragePooling {
  template <class Team>
  TANDEM_HOST_DEVICE void operator()(const Team& team, int64_t i) const {
    const cuda::Position output = geometry.output.position(i);
    const PoolingWindow window(geometry, output);
    double sum = 0;
    for (int64_t k = team.rank(); k < window.count(); k += team.size()) {
      sum += static_cast<double>(cuda::load(x[geometry.input.index(window.pixel(output, k))]));
    }
    sum = team.sum(sum);
    const int64_t area = geometry.h.padded_length(output.h) * geometry.w.padded_length(output.w);
    if (team.rank() == 0) cuda::store(static_cast<float>(sum / static_cast<double>(area)), y[i]);
  }
  PoolingGeometry geometry;
  const T* x;
  T* y;
};

template <class T>
struct PoolingBackward {
  TANDEM_HOST_DEVICE void operator()(int64_t i) const {
    const cuda::Position input = geometry.input.position(i);
    const PoolingAxis::Range rows = geometry.h.windows_of(input.h);
    const PoolingAxis::Range columns = geometry.w.windows_of(input.w);
    const auto own = static_cast<int32_t>(input.h * geometry.input.width + input.w);
    float sum = 0;
    for (int64_t h = rows.begin; h < rows.end; ++h) {
      for (int64_t w = columns.begin; w < columns.end; ++w) {
        const int64_t at = geometry.output.index({input.n, input.c, h, w});
        if (pixels != nullptr) {
          if (pixels[at] == own) sum += cuda::load(dy[at]);
        } else {
          const int64_t area = geometry.h.padded_length(h) * geometry.w.padded_length(w);
          sum += cuda::load(dy[at]) / static_cast<float>(area);
        }
      }
    }
    const bool passes = x == nullptr || cuda::load(x[i]) > 0;
    cuda::store(passes ? sum : 0.0F, dx[i]);
  }
  PoolingGeometry geometry;
  const T* dy;
  const int32_t* pixels;  // nullptr for an average
  const T* x;             // of an average after a ReLU whose gradient is to be applied
  T* dx;
};

class PoolingCuda : public sdk::Needs {
 public:
  PoolingCuda(const sdk::Binding& binding, const sdk::Call&)
      : settings_(binding.attributes, binding.input(0).shape),
        geometry_(binding, settings_.window, settings_.counts_padding),
        small_(binding, settings_.window),
        inputs_(sdk::count(binding.input(0).shape)),
        outputs_(sdk::count(binding.output(0).shape)),
        dtype_(binding.input(0).dtype),
        follows_relu_(binding.follows_relu()) {
    const tandem_shape& shape = binding.input(0).shape;
    if (shape.h * shape.w > INT32_MAX) {
      throw sdk::unsupported("an image of ", shape.h, "x", shape.w,
                             " has more than 2147483647 pixels");
    }
    if (settings_.maximum && binding.has(TANDEM_WANTS_BACKWARD_DATA)) {
      saved_bytes = outputs_ * (has_small_windows() ? 1 : 4);
    }
  }

  static constexpr uint32_t dtypes = cuda::all_dtypes;
  static constexpr uint32_t gradients_before = sdk::relu_only;

  static sdk::LayoutOptions layouts(const sdk::Binding&) { return cuda::plain_layouts(); }

  void forward(const sdk::Call& call, const sdk::DevicePass& pass) const {
    const cuda::Teams teams{outputs_, geometry_.h.kernel * geometry_.w.kernel, true};
    cuda::with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      const T* x = pass.input<T>(0).get();
      T* y = pass.output<T>(0).get();
      if (has_small_windows() && settings_.maximum) {
        small_.maximum(call, x, y, saved_bytes > 0 ? pass.saved<uint8_t>().get() : nullptr,
                       follows_relu_);
      } else if (has_small_windows()) {
        small_.average(call, x, y);
      } else if (settings_.maximum) {
        cuda::for_teams(call, teams,
                        MaximumPooling<T>{geometry_, x, y,
                                          saved_bytes > 0 ? pass.saved<int32_t>().get() : nullptr,
                                          follows_relu_});
      } else {
        cuda::for_teams(call, teams, AveragePooling<T>{geometry_, x, y});
      }
    });
  }

  void backward_data(const sdk::Call& call, const sdk::DevicePass& pass) const {
    cuda::with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      const T* dy = pass.output_gradient<T>(0).get();
      T* dx = pass.input_gradient<T>(0).get();
      const T* x = follows_relu_ && !settings_.maximum ? pass.input<T>(0).get() : nullptr;
      if (has_small_windows()) {
        if (!settings_.maximum) return small_.average_backward(call, dy, x, dx);
        return small_.maximum_backward(call, dy, pass.saved<const uint8_t>().get(), dx);
      }
      const int32_t* pixels = settings_.maximum ? pass.saved<const int32_t>().get() : nullptr;
      cuda::for_each(call, inputs_, PoolingBackward<T>{geometry_, dy, pixels, x, dx});
    });
  }

 private:
  [[nodiscard]] bool has_small_windows() const {
    return small_.is_possible() && (settings_.maximum || settings_.counts_padding);
  }

  PoolingSettings settings_;
  PoolingGeometry geometry_;
  SmallPooling small_;
  int64_t inputs_, outputs_;
  int32_t dtype_;
  bool follows_relu_;
};

}  // namespace tandem::layers
