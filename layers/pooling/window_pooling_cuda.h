// Pooling by windows of at most 255 pixels on NVIDIA GPUs: a thread computes one output, in NHWC
// those of neighbouring channels. The place of a maximum within its window is saved as one byte.
// Backward, a thread adds the windows that contain its pixel in their order, without atomic
// operations.
#pragma once

#include <cstdint>

#include "layers/pooling/pooling_geometry_cuda.h"
#include "plugins/cuda/vectors.h"

namespace tandem::layers {

constexpr int64_t most_places = 255;
constexpr uint8_t no_place = 255;  // of a window outside the image

// Where the elements of an image lie: an image is those of one row, in NCHW of one channel of it.
struct PoolingImage {
  PoolingImage(const cuda::TensorIndex& tensor, bool is_channels_last)
      : width(tensor.width),
        height(tensor.height),
        inner(is_channels_last ? static_cast<int64_t>(tensor.channels) : 1),
        row_stride(tensor.width * static_cast<int64_t>(inner)),
        size(tensor.height * row_stride) {}

  struct Place {
    int64_t image, inner;
    int h, w;
  };
  [[nodiscard]] TANDEM_HOST_DEVICE Place place(int64_t index) const {
    const int64_t pixel = cuda::quotient(index, inner);
    const int64_t line = cuda::quotient(pixel, width), image = cuda::quotient(line, height);
    return {image, index - pixel * inner, static_cast<int>(line - image * height),
            static_cast<int>(pixel - line * width)};
  }

  cuda::Divisor width, height, inner;
  int64_t row_stride, size;
};

// The windows of one axis, in 32 bits.
struct SmallAxis {
  explicit SmallAxis(const PoolingAxis& axis)
      : extent(static_cast<int>(axis.extent)),
        windows(static_cast<int>(axis.windows)),
        kernel(static_cast<int>(axis.kernel)),
        stride(static_cast<int>(static_cast<int64_t>(axis.stride))),
        pad(static_cast<int>(axis.pad)) {}

  // The first window that contains the pixel, and the first one behind it that does not.
  [[nodiscard]] TANDEM_HOST_DEVICE int first_window(int pixel) const {
    const int place = pixel + pad;
    return place < kernel ? 0 : (place - kernel) / stride + 1;
  }
  [[nodiscard]] TANDEM_HOST_DEVICE int end_window(int pixel) const {
    const int end = (pixel + pad) / stride + 1;
    return end < windows ? end : windows;
  }
  // The length of a window inside the padded image.
  [[nodiscard]] TANDEM_HOST_DEVICE int padded_length(int window) const {
    const int begin = window * stride - pad, end = begin + kernel;
    return (end < extent + pad ? end : extent + pad) - begin;
  }

  int extent, windows, kernel, stride, pad;
};

struct SmallWindows {
  // A tensor of one pixel is called NCHW, whatever the layout of the other one is.
  explicit SmallWindows(const PoolingGeometry& geometry)
      : input(geometry.input, geometry.input.channels_last || geometry.output.channels_last),
        output(geometry.output, geometry.input.channels_last || geometry.output.channels_last),
        h(geometry.h),
        w(geometry.w) {}

  // Calls visit(index of the pixel, place in the window) for the pixels of the window at `at`.
  template <class Visit>
  TANDEM_HOST_DEVICE void visit(const PoolingImage::Place& at, const Visit& visit) const {
    const int top = at.h * h.stride - h.pad, left = at.w * w.stride - w.pad;
    const int64_t image = at.image * input.size + at.inner;
    for (int r = 0; r < h.kernel; ++r) {
      if (top + r < 0 || top + r >= h.extent) continue;
      const int64_t line = image + (top + r) * input.row_stride;
      for (int s = 0; s < w.kernel; ++s) {
        if (left + s < 0 || left + s >= w.extent) continue;
        visit(line + (left + s) * static_cast<int64_t>(input.inner), r * w.kernel + s);
      }
    }
  }
  [[nodiscard]] TANDEM_HOST_DEVICE float area(int window_h, int window_w) const {
    return static_cast<float>(h.padded_length(window_h) * w.padded_length(window_w));
  }
  // Whether vectors of n channels begin at multiples of n.
  [[nodiscard]] bool has_vectors(int n) const {
    return input.inner > 1 && static_cast<int64_t>(input.inner) % n == 0;
  }

  PoolingImage input, output;
  SmallAxis h, w;
};

template <int n>
struct PooledMaxima {
  cuda::Values<n> values;
  cuda::Elements<uint8_t, n> places;
};

// A NaN is larger than all numbers. Of equal values the first one is taken.
template <class T>
struct WindowMaximum {
  static constexpr int at_once = cuda::elements_at_once<T>;
  [[nodiscard]] bool can_vectorize() const {
    return windows.has_vectors(at_once) && cuda::are_aligned(x, y, places);
  }
  template <int n>
  [[nodiscard]] TANDEM_HOST_DEVICE PooledMaxima<n> read(int64_t i) const {
    PooledMaxima<n> best;
    TANDEM_UNROLL
    for (int lane = 0; lane < n; ++lane) {
      best.values.value[lane] = 0;
      best.places.element[lane] = no_place;
    }
    windows.visit(windows.output.place(i), [&](int64_t pixel, int place) {
      const cuda::Elements<T, n> here = cuda::read<n>(x + pixel);
      TANDEM_UNROLL
      for (int lane = 0; lane < n; ++lane) {
        const float value = here[lane], old = best.values[lane];
        const bool is_larger = old == old && !(value <= old);
        if (best.places.element[lane] != no_place && !is_larger) continue;
        best.values.value[lane] = value;
        best.places.element[lane] = static_cast<uint8_t>(place);
      }
    });
    return best;
  }
  template <int n>
  TANDEM_HOST_DEVICE void write(int64_t i, const PooledMaxima<n>& best) const {
    cuda::write(best.values, y + i);
    if (places != nullptr) cuda::write(best.places, places + i);
  }
  SmallWindows windows;
  const T* x;
  T* y;
  uint8_t* places;  // nullptr without a backward pass
};

// Sums at most 255 values in float32, each row of the window by itself.
template <class T>
struct WindowAverage {
  static constexpr int at_once = cuda::elements_at_once<T>;
  [[nodiscard]] bool can_vectorize() const {
    return windows.has_vectors(at_once) && cuda::are_aligned(x, y);
  }
  template <int n>
  [[nodiscard]] TANDEM_HOST_DEVICE cuda::Values<n> read(int64_t i) const {
    const PoolingImage::Place at = windows.output.place(i);
    cuda::Values<n> sum{}, line{};
    int row = 0;
    windows.visit(at, [&](int64_t pixel, int place) {
      const cuda::Elements<T, n> here = cuda::read<n>(x + pixel);
      const bool begins_row = place >= row + windows.w.kernel;
      if (begins_row) row = place / windows.w.kernel * windows.w.kernel;
      TANDEM_UNROLL
      for (int lane = 0; lane < n; ++lane) {
        if (begins_row) sum.value[lane] += line[lane];
        line.value[lane] = begins_row ? here[lane] : line[lane] + here[lane];
      }
    });
    const float area = windows.area(at.h, at.w);
    return cuda::each_lane<n>([&](int lane) { return (sum[lane] + line[lane]) / area; });
  }
  template <int n>
  TANDEM_HOST_DEVICE void write(int64_t i, const cuda::Values<n>& values) const {
    cuda::write(values, y + i);
  }
  SmallWindows windows;
  const T* x;
  T* y;
};

// `maximum`: the gradient of a window goes to the place of its maximum, else to all its pixels.
template <class T, bool maximum>
struct WindowBackward {
  static constexpr int at_once = cuda::elements_at_once<T>;
  [[nodiscard]] bool can_vectorize() const {
    return windows.has_vectors(at_once) && cuda::are_aligned(dy, dx, places);
  }
  template <int n>
  [[nodiscard]] TANDEM_HOST_DEVICE cuda::Values<n> read(int64_t i) const {
    const PoolingImage& output = windows.output;
    const PoolingImage::Place at = windows.input.place(i);
    const int end_h = windows.h.end_window(at.h), end_w = windows.w.end_window(at.w);
    const int64_t image = at.image * output.size + at.inner;
    cuda::Values<n> sum{};
    for (int h = windows.h.first_window(at.h); h < end_h; ++h) {
      const int r = at.h + windows.h.pad - h * windows.h.stride;
      for (int w = windows.w.first_window(at.w); w < end_w; ++w) {
        const int s = at.w + windows.w.pad - w * windows.w.stride;
        const int64_t window =
            image + h * output.row_stride + w * static_cast<int64_t>(output.inner);
        add<n>(window, r * windows.w.kernel + s, maximum ? 1 : windows.area(h, w), sum);
      }
    }
    return sum;
  }
  template <int n>
  TANDEM_HOST_DEVICE void write(int64_t i, const cuda::Values<n>& values) const {
    cuda::write(values, dx + i);
  }

  // Adds what the pixel at `place` of a window receives.
  template <int n>
  TANDEM_HOST_DEVICE void add(int64_t window, int place, float area, cuda::Values<n>& sum) const {
    const cuda::Elements<T, n> gradient = cuda::read<n>(dy + window);
    if constexpr (maximum) {
      const cuda::Elements<uint8_t, n> taken = cuda::read<n>(places + window);
      TANDEM_UNROLL
      for (int lane = 0; lane < n; ++lane) {
        if (taken[lane] == place) sum.value[lane] += gradient[lane];
      }
    } else {
      TANDEM_UNROLL
      for (int lane = 0; lane < n; ++lane) sum.value[lane] += gradient[lane] / area;
    }
  }

  SmallWindows windows;
  const T* dy;
  const uint8_t* places;  // of maxima
  T* dx;
};

}  // namespace tandem::layers
