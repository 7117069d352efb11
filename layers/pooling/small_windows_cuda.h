// Pooling of small windows on NVIDIA GPUs, near the speed of the memory: indices have 32 bits, a
// thread processes neighboring channels together where channels are last, the loops over the usual
// windows are unrolled, and the pixel of a maximum is saved as a byte, its number in the window.
// The bits of a result are the same for any number of channels a thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "layers/pooling/pooling.h"
#include "plugins/cuda/elements.h"
#include "plugins/cuda/indexing.h"
#include "plugins/cuda/teams.h"
#include "plugins/cuda/vectors.h"

namespace tandem::layers {

// One axis of the windows.
struct SmallAxis {
  int extent, windows, kernel, stride, pad;
  cuda::SmallDivisor by_stride;

  // The windows [begin, end) contain the pixel that lies `place` behind the begin of the padding.
  [[nodiscard]] TANDEM_HOST_DEVICE int begin(int place) const {
    return place < kernel ? 0 : by_stride.divide(place - kernel) + 1;
  }
  [[nodiscard]] TANDEM_HOST_DEVICE int end(int place) const {
    const int last = by_stride.divide(place) + 1;
    return last < windows ? last : windows;
  }
  // The pixel nearest to `pixel` inside the image.
  [[nodiscard]] TANDEM_HOST_DEVICE int inside(int pixel) const {
    return pixel < 0 ? 0 : pixel < extent ? pixel : extent - 1;
  }
  // The length of the window from `first` on in the padded image.
  [[nodiscard]] TANDEM_HOST_DEVICE int padded_length(int first) const {
    const int last = first + kernel;
    return (last < extent + pad ? last : extent + pad) - first;
  }
};

// The indices of a tensor, counted in vectors: of `inner` of them for each pixel.
struct SmallGrid {
  struct Place {
    int outer, h, w, inner;
  };
  cuda::SmallDivisor height, width, inner;

  [[nodiscard]] TANDEM_HOST_DEVICE Place place(int index) const {
    const int pixel = inner.divide(index), line = width.divide(pixel);
    const int outer = height.divide(line);
    return {outer, line - outer * height.value, pixel - line * width.value,
            index - pixel * inner.value};
  }
  // The vector at (0, 0) of the same image and channels.
  [[nodiscard]] TANDEM_HOST_DEVICE int first(const Place& p) const {
    return p.outer * height.value * width.value * inner.value + p.inner;
  }
};

struct SmallWindows {
  SmallAxis h, w;
  SmallGrid input, output;
};

// Of a maximum without a gradient; a window has at most 255 pixels.
constexpr uint8_t no_offset = 255;

// K: the windows are K x K; 0: any.
template <class T, int n, int K>
struct SmallMaximum {
  TANDEM_HOST_DEVICE void operator()(int64_t i) const {
    const SmallGrid::Place at = windows.output.place(static_cast<int>(i));
    const int top = at.h * windows.h.stride - windows.h.pad;
    const int left = at.w * windows.w.stride - windows.w.pad;
    Best best{};
    if constexpr (K > 0) {
      // Pixels outside the image are replaced by the nearest one inside. So pixels may repeat, but
      // each is first seen in the same order.
      TANDEM_UNROLL
      for (int dy = 0; dy < K; ++dy) {
        TANDEM_UNROLL
        for (int dx = 0; dx < K; ++dx) {
          take(at, top, left, windows.h.inside(top + dy), windows.w.inside(left + dx), dy + dx == 0,
               best);
        }
      }
    } else {
      const int bottom = windows.h.inside(top + windows.h.kernel - 1);
      const int right = windows.w.inside(left + windows.w.kernel - 1);
      const int first_row = windows.h.inside(top), first_column = windows.w.inside(left);
      for (int row = first_row; row <= bottom; ++row) {
        for (int column = first_column; column <= right; ++column) {
          take(at, top, left, row, column, row == first_row && column == first_column, best);
        }
      }
    }
    cuda::write(best.value, y + i * n);  // rounds nothing
    if (offsets == nullptr) return;
    TANDEM_UNROLL
    for (int lane = 0; lane < n; ++lane) {
      if (follows_relu && !(best.value[lane] > 0)) best.offset.element[lane] = no_offset;
    }
    cuda::write(best.offset, offsets + i * n);
  }
  SmallWindows windows;
  const T* x;
  T* y;
  uint8_t* offsets;   // nullptr without a backward pass
  bool follows_relu;  // then a maximum that is not above zero has no gradient

 private:
  struct Best {
    cuda::Values<n> value;
    cuda::Elements<uint8_t, n> offset;
  };
  // A NaN precedes all numbers, and of equal values the first.
  TANDEM_HOST_DEVICE void take(const SmallGrid::Place& at, int top, int left, int row, int column,
                               bool is_first, Best& best) const {
    const int pixel = row * windows.w.extent + column;
    const int vector = windows.input.first(at) + pixel * windows.input.inner.value;
    const auto here = cuda::read<n>(x + static_cast<int64_t>(vector) * n);
    const auto offset = static_cast<uint8_t>((row - top) * windows.w.kernel + (column - left));
    TANDEM_UNROLL
    for (int lane = 0; lane < n; ++lane) {
      const float other = here[lane], own = best.value[lane];
      if (is_first || other > own || (other != other && own == own)) {
        best.value.value[lane] = other;
        best.offset.element[lane] = offset;
      }
    }
  }
};

// The sum of each row of a window is in float32, the sum of those in double.
template <class T, int n>
struct SmallAverage {
  TANDEM_HOST_DEVICE void operator()(int64_t i) const {
    const SmallGrid::Place at = windows.output.place(static_cast<int>(i));
    const int top = at.h * windows.h.stride - windows.h.pad;
    const int left = at.w * windows.w.stride - windows.w.pad;
    const int bottom = windows.h.inside(top + windows.h.kernel - 1);
    const int begin = windows.w.inside(left);
    const int columns = windows.w.inside(left + windows.w.kernel - 1) - begin + 1;
    double sums[n] = {};
    for (int row = windows.h.inside(top); row <= bottom; ++row) {
      const int vector =
          windows.input.first(at) + (row * windows.w.extent + begin) * windows.input.inner.value;
      const T* line = x + static_cast<int64_t>(vector) * n;
      float row_sums[n] = {};
      for (int k = 0; k < columns; ++k) {
        const auto here = cuda::read<n>(line + k * windows.input.inner.value * n);
        TANDEM_UNROLL
        for (int lane = 0; lane < n; ++lane) row_sums[lane] += here[lane];
      }
      TANDEM_UNROLL
      for (int lane = 0; lane < n; ++lane) sums[lane] += static_cast<double>(row_sums[lane]);
    }
    const double share = 1.0 / (windows.h.padded_length(top) * windows.w.padded_length(left));
    cuda::write(
        cuda::each_lane<n>([&](int lane) { return static_cast<float>(sums[lane] * share); }),
        y + i * n);
  }
  SmallWindows windows;
  const T* x;
  T* y;
};

// M: a pixel is in at most M x M windows; 0: any number. The gradient is the sum over the windows
// in their order.
template <class T, int n, int M>
struct SmallMaximumBackward {
  TANDEM_HOST_DEVICE void operator()(int64_t i) const {
    const SmallGrid::Place at = windows.input.place(static_cast<int>(i));
    const int h = at.h + windows.h.pad, w = at.w + windows.w.pad;
    const int top = windows.h.begin(h), bottom = windows.h.end(h);
    const int left = windows.w.begin(w), right = windows.w.end(w);
    cuda::Values<n> sum{};
    if constexpr (M > 0) {
      TANDEM_UNROLL
      for (int j = 0; j < M; ++j) {
        TANDEM_UNROLL
        for (int k = 0; k < M; ++k) {
          const bool exists = top + j < bottom && left + k < right;
          const int row = exists ? top + j : 0, column = exists ? left + k : 0;
          add(at, h, w, row, column, exists, sum);
        }
      }
    } else {
      for (int row = top; row < bottom; ++row) {
        for (int column = left; column < right; ++column) add(at, h, w, row, column, true, sum);
      }
    }
    cuda::write(sum, dx + i * n);
  }
  SmallWindows windows;
  const T* dy;
  const uint8_t* offsets;
  T* dx;

 private:
  TANDEM_HOST_DEVICE void add(const SmallGrid::Place& at, int h, int w, int row, int column,
                              bool exists, cuda::Values<n>& sum) const {
    const int pixel = row * windows.w.windows + column;
    const int vector = windows.output.first(at) + pixel * windows.output.inner.value;
    const int own =
        exists ? (h - row * windows.h.stride) * windows.w.kernel + (w - column * windows.w.stride)
               : -1;
    const auto gradient = cuda::read<n>(dy + static_cast<int64_t>(vector) * n);
    const auto from = cuda::read<n>(offsets + static_cast<int64_t>(vector) * n);
    TANDEM_UNROLL
    for (int lane = 0; lane < n; ++lane) {
      sum.value[lane] += from[lane] == own ? gradient[lane] : 0.0F;
    }
  }
};

template <class T, int n>
struct SmallAverageBackward {
  TANDEM_HOST_DEVICE void operator()(int64_t i) const {
    const SmallGrid::Place at = windows.input.place(static_cast<int>(i));
    const int h = at.h + windows.h.pad, w = at.w + windows.w.pad;
    const int bottom = windows.h.end(h), right = windows.w.end(w);
    cuda::Values<n> sum{};
    for (int row = windows.h.begin(h); row < bottom; ++row) {
      const int length = windows.h.padded_length(row * windows.h.stride - windows.h.pad);
      for (int column = windows.w.begin(w); column < right; ++column) {
        const int first = column * windows.w.stride - windows.w.pad;
        const float share = 1.0F / static_cast<float>(length * windows.w.padded_length(first));
        const int pixel = row * windows.w.windows + column;
        const int vector = windows.output.first(at) + pixel * windows.output.inner.value;
        const auto gradient = cuda::read<n>(dy + static_cast<int64_t>(vector) * n);
        TANDEM_UNROLL
        for (int lane = 0; lane < n; ++lane) sum.value[lane] += gradient[lane] * share;
      }
    }
    if (x != nullptr) {
      const auto values = cuda::read<n>(x + i * n);
      sum = cuda::each_lane<n>([&](int lane) { return values[lane] > 0 ? sum[lane] : 0.0F; });
    }
    cuda::write(sum, dx + i * n);
  }
  SmallWindows windows;
  const T* dy;
  const T* x;  // the input, if a ReLU made it whose gradient is to be applied; else nullptr
  T* dx;
};

// The kernels' launches.
class SmallPooling {
 public:
  SmallPooling() = default;
  SmallPooling(const sdk::Binding& binding, const Window& window)
      : input_(binding.input(0)), output_(binding.output(0)), window_(window) {
    const int64_t area = window.kernel.h * window.kernel.w;
    constexpr int64_t most = INT32_MAX / 2;  // of elements
    is_possible_ = window.kernel.h <= 16 && window.kernel.w <= 15 && area <= 255 &&
                   window.stride.h <= 1024 && window.stride.w <= 1024 &&
                   sdk::count(input_.shape) < most && sdk::count(output_.shape) < most;
  }
  [[nodiscard]] bool is_possible() const { return is_possible_; }

  template <class T>
  void maximum(const sdk::Call& call, const T* x, T* y, uint8_t* offsets, bool follows_relu) const {
    with_lanes<T>(cuda::are_aligned(x, y) && cuda::are_aligned(offsets), [&](auto lanes) {
      constexpr int n = decltype(lanes)::value;
      const int64_t count = sdk::count(output_.shape) / n;
      const SmallWindows windows = windows_of(n);
      const bool square = window_.kernel.h == window_.kernel.w;
      if (square && window_.kernel.h == 2) {
        cuda::for_each(call, count, SmallMaximum<T, n, 2>{windows, x, y, offsets, follows_relu});
      } else if (square && window_.kernel.h == 3) {
        cuda::for_each(call, count, SmallMaximum<T, n, 3>{windows, x, y, offsets, follows_relu});
      } else {
        cuda::for_each(call, count, SmallMaximum<T, n, 0>{windows, x, y, offsets, follows_relu});
      }
    });
  }
  template <class T>
  void average(const sdk::Call& call, const T* x, T* y) const {
    with_lanes<T>(cuda::are_aligned(x, y), [&](auto lanes) {
      constexpr int n = decltype(lanes)::value;
      cuda::for_each(call, sdk::count(output_.shape) / n, SmallAverage<T, n>{windows_of(n), x, y});
    });
  }
  template <class T>
  void maximum_backward(const sdk::Call& call, const T* dy, const uint8_t* offsets, T* dx) const {
    with_lanes<T>(cuda::are_aligned(dy, dx) && cuda::are_aligned(offsets), [&](auto lanes) {
      constexpr int n = decltype(lanes)::value;
      const int64_t count = sdk::count(input_.shape) / n;
      const SmallWindows windows = windows_of(n);
      const int64_t most = std::max((window_.kernel.h - 1) / window_.stride.h,
                                    (window_.kernel.w - 1) / window_.stride.w) +
                           1;
      if (most == 1) {
        cuda::for_each(call, count, SmallMaximumBackward<T, n, 1>{windows, dy, offsets, dx});
      } else if (most == 2) {
        cuda::for_each(call, count, SmallMaximumBackward<T, n, 2>{windows, dy, offsets, dx});
      } else if (most == 3) {
        cuda::for_each(call, count, SmallMaximumBackward<T, n, 3>{windows, dy, offsets, dx});
      } else {
        cuda::for_each(call, count, SmallMaximumBackward<T, n, 0>{windows, dy, offsets, dx});
      }
    });
  }
  template <class T>
  void average_backward(const sdk::Call& call, const T* dy, const T* x, T* dx) const {
    with_lanes<T>(cuda::are_aligned(dy, x, dx), [&](auto lanes) {
      constexpr int n = decltype(lanes)::value;
      cuda::for_each(call, sdk::count(input_.shape) / n,
                     SmallAverageBackward<T, n>{windows_of(n), dy, x, dx});
    });
  }

 private:
  // body(the number of channels that a thread processes together).
  template <class T, class Body>
  void with_lanes(bool aligned, const Body& body) const {
    constexpr int n = cuda::elements_at_once<T>;
    if (aligned && is_channels_last() && input_.shape.c % n == 0) {
      body(std::integral_constant<int, n>());
    } else {
      body(std::integral_constant<int, 1>());
    }
  }
  // A tensor of one pixel is called NCHW, whatever the layout of the other one is.
  [[nodiscard]] bool is_channels_last() const {
    return input_.layout == TANDEM_NHWC || output_.layout == TANDEM_NHWC;
  }
  [[nodiscard]] SmallWindows windows_of(int n) const {
    const auto axis = [](int64_t extent, int64_t windows, int64_t kernel, int64_t stride,
                         int64_t pad) {
      return SmallAxis{static_cast<int>(extent), static_cast<int>(windows),
                       static_cast<int>(kernel), static_cast<int>(stride),
                       static_cast<int>(pad),    stride};
    };
    const int64_t inner = is_channels_last() ? input_.shape.c / n : 1;
    const tandem_shape &in = input_.shape, &out = output_.shape;
    const Window& v = window_;
    return {axis(in.h, out.h, v.kernel.h, v.stride.h, v.pad.h),
            axis(in.w, out.w, v.kernel.w, v.stride.w, v.pad.w),
            {in.h, in.w, inner},
            {out.h, out.w, inner}};
  }

  tandem_tensor input_{}, output_{};
  Window window_{};
  bool is_possible_ = false;
};

}  // namespace tandem::layers
