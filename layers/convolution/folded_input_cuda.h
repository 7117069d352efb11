// A convolution with a stride over an input of few channels, such as a net's first layer, as one
// without a stride over an input of many: the pixels of each block of stride x stride become
// channels of one pixel, and the weights are arranged likewise, with zeros where a block reaches
// beyond the kernel. The result is the same sum. Tensor cores multiply vectors of channels, so that
// three of them use a small part; folded, AlexNet's first layer takes a quarter of the time on an
// H200.
#pragma once

#include <cstdint>
#include <optional>

#include "plugins/cuda/convolution_shape.h"
#include "plugins/cuda/elements.h"
#include "plugins/cuda/indexing.h"
#include "plugins/cuda/scratch_memory.h"
#include "plugins/cuda/teams.h"
#include "plugins/cuda/vectors.h"

namespace tandem::layers {

// Of blocks of h x w pixels with `channels` channels each.
struct FoldedBlocks {
  int h, w, channels;
  cuda::SmallDivisor row, pixel;  // the elements of a row of a block, and of a pixel

  FoldedBlocks(int64_t h, int64_t w, int64_t channels)
      : h(static_cast<int>(h)),
        w(static_cast<int>(w)),
        channels(static_cast<int>(channels)),
        row(w * channels),
        pixel(channels) {}

  struct Place {
    int h, w, channel;
  };
  // Of channel `k` of a folded pixel. Beyond the block, h is at least its height.
  [[nodiscard]] TANDEM_HOST_DEVICE Place place(int k) const {
    const int line = row.divide(k), first = k - line * row.value, column = pixel.divide(first);
    return {line, column, first - column * channels};
  }
  [[nodiscard]] TANDEM_HOST_DEVICE int index(const Place& p) const {
    return (p.h * w + p.w) * channels + p.channel;
  }
};

// Neighboring channels of a folded pixel. Both tensors are NHWC.
template <class T>
struct FoldedInputElements {
  static constexpr int at_once = cuda::elements_at_once<T>;
  [[nodiscard]] bool can_vectorize() const { return cuda::are_aligned(folded); }
  template <int n>
  [[nodiscard]] TANDEM_HOST_DEVICE cuda::Elements<T, n> read(int64_t i) const {
    const int64_t pixel = cuda::quotient(i, channels), line = cuda::quotient(pixel, width);
    const int64_t image = cuda::quotient(line, height);
    const int first = static_cast<int>(i - pixel * channels);
    const int top = static_cast<int>(line - image * height) * blocks.h - pad_h;
    const int left = static_cast<int>(pixel - line * width) * blocks.w - pad_w;
    cuda::Elements<T, n> result;
    TANDEM_UNROLL
    for (int lane = 0; lane < n; ++lane) {
      const FoldedBlocks::Place at = blocks.place(first + lane);
      const int y = top + at.h, x_at = left + at.w;
      const bool is_inside =
          at.h < blocks.h && y >= 0 && y < input_h && x_at >= 0 && x_at < input_w;
      const int64_t from = ((image * input_h + y) * input_w + x_at) * blocks.channels + at.channel;
      result.element[lane] = is_inside ? x[from] : T{};
    }
    return result;
  }
  template <int n>
  TANDEM_HOST_DEVICE void write(int64_t i, const cuda::Elements<T, n>& values) const {
    cuda::write(values, folded + i);
  }
  FoldedBlocks blocks;
  cuda::Divisor channels, height, width;  // of the folded input
  int input_h, input_w, pad_h, pad_w;
  const T* x;
  T* folded;
};

// Where a weight lies in the folded weights, which have the order (O, H, W, I).
struct FoldedFilterIndex {
  FoldedBlocks blocks;
  cuda::Divisor channels, h, w;      // of the folded weights
  cuda::Divisor kernel_h, kernel_w;  // of the weights

  // The index of the weight whose place is `folded`, in (O, I, H, W) order; -1: there is none.
  [[nodiscard]] TANDEM_HOST_DEVICE int64_t plain(int64_t folded) const {
    const int64_t point = cuda::quotient(folded, channels), line = cuda::quotient(point, w);
    const int64_t output = cuda::quotient(line, h);
    const FoldedBlocks::Place at = blocks.place(static_cast<int>(folded - point * channels));
    const int64_t y = (line - output * h) * blocks.h + at.h,
                  x = (point - line * w) * blocks.w + at.w;
    if (at.h >= blocks.h || y >= kernel_h || x >= kernel_w) return -1;
    return ((output * blocks.channels + at.channel) * kernel_h + y) * kernel_w + x;
  }
  [[nodiscard]] TANDEM_HOST_DEVICE int64_t folded(int64_t plain) const {
    const int64_t line = cuda::quotient(plain, kernel_w), plane = cuda::quotient(line, kernel_h);
    const int64_t output = plane / blocks.channels;
    const int y = static_cast<int>(line - plane * kernel_h);
    const int x = static_cast<int>(plain - line * kernel_w);
    const FoldedBlocks::Place at{y % blocks.h, x % blocks.w,
                                 static_cast<int>(plane - output * blocks.channels)};
    return ((output * h + y / blocks.h) * w + x / blocks.w) * channels + blocks.index(at);
  }
};

template <class T>
struct FoldedFilterElement {
  TANDEM_HOST_DEVICE void operator()(int64_t i) const {
    const int64_t from = index.plain(i);
    cuda::store(from < 0 ? 0.0F : plain[from], folded[i]);
  }
  FoldedFilterIndex index;
  const float* plain;
  T* folded;
};
template <class T>
struct FoldedGradientElement {
  TANDEM_HOST_DEVICE void operator()(int64_t i) const {
    plain[i] = (accumulate ? plain[i] : 0.0F) + cuda::load(folded[index.folded(i)]);
  }
  FoldedFilterIndex index;
  const T* folded;
  float* plain;
  bool accumulate;
};

class FoldedInput {
 public:
  // None where it does not pay: it is for NHWC, few channels, and no gradient of the input.
  static std::optional<FoldedInput> of(const cuda::ConvolutionShape& shape,
                                       const cuda::ConvolutionKind& kind, bool backward_data) {
    const auto& [stride_h, stride_w] = shape.stride;
    const tandem_shape& weight = shape.weight;
    const bool pays = kind.channels_last && !kind.deconvolves && !backward_data &&
                      shape.group == 1 && shape.dilation.h == 1 && shape.dilation.w == 1 &&
                      shape.x.c <= 4 && stride_h > 1 && stride_w > 1 && weight.h >= stride_h &&
                      weight.w >= stride_w && shape.x.c * stride_h * stride_w <= max_channels;
    if (!pays) return {};
    return FoldedInput(shape, kind);
  }

  // Of the convolution over the folded input.
  [[nodiscard]] const cuda::ConvolutionShape& shape() const { return folded_; }
  // The sizes of the folded tensors, rounded up so that what follows them is aligned.
  [[nodiscard]] int64_t input_bytes() const { return bytes_of(folded_.x); }
  [[nodiscard]] int64_t filter_bytes() const { return bytes_of(folded_.weight); }

  void fold_input(const sdk::Call& call, const void* x, void* folded) const {
    cuda::with_elements(kind_.dtype, [&](auto element) {
      using T = decltype(element);
      cuda::for_each(
          call, sdk::count(folded_.x),
          FoldedInputElements<T>{blocks_, folded_.x.c, folded_.x.h, folded_.x.w,
                                 static_cast<int>(plain_.x.h), static_cast<int>(plain_.x.w),
                                 static_cast<int>(plain_.pad.h), static_cast<int>(plain_.pad.w),
                                 static_cast<const T*>(x), static_cast<T*>(folded)});
    });
  }
  void fold_filter(const sdk::Call& call, const float* weight, void* folded) const {
    cuda::with_elements(kind_.dtype, [&](auto element) {
      using T = decltype(element);
      cuda::for_each(call, sdk::count(folded_.weight),
                     FoldedFilterElement<T>{index_, weight, static_cast<T*>(folded)});
    });
  }
  void take_gradient(const sdk::Call& call, const void* folded, float* gradient,
                     bool accumulate) const {
    cuda::with_elements(kind_.dtype, [&](auto element) {
      using T = decltype(element);
      cuda::for_each(
          call, sdk::count(plain_.weight),
          FoldedGradientElement<T>{index_, static_cast<const T*>(folded), gradient, accumulate});
    });
  }

 private:
  static constexpr int64_t max_channels = 64;

  // Measured on an H200: whole vectors for tensor cores, and 64 channels rather than 48.
  static int64_t rounded_channels(int64_t channels) {
    return channels > 32 ? max_channels : (channels + 15) / 16 * 16;
  }

  FoldedInput(const cuda::ConvolutionShape& shape, const cuda::ConvolutionKind& kind)
      : plain_(shape),
        folded_(shape),
        kind_(kind),
        blocks_(shape.stride.h, shape.stride.w, shape.x.c),
        index_{blocks_, 1, 1, 1, shape.weight.h, shape.weight.w} {
    const int64_t channels = rounded_channels(shape.x.c * shape.stride.h * shape.stride.w);
    const int64_t h = (shape.weight.h + shape.stride.h - 1) / shape.stride.h;
    const int64_t w = (shape.weight.w + shape.stride.w - 1) / shape.stride.w;
    folded_.weight = {shape.weight.n, channels, h, w};
    folded_.x = {shape.x.n, channels, shape.y.h + h - 1, shape.y.w + w - 1};
    folded_.stride = {1, 1};
    folded_.pad = {0, 0};
    index_.channels = channels;
    index_.h = h;
    index_.w = w;
  }

  [[nodiscard]] int64_t bytes_of(const tandem_shape& shape) const {
    return cuda::scratch_part(sdk::count(shape) * (kind_.dtype == TANDEM_FLOAT32 ? 4 : 2));
  }

  cuda::ConvolutionShape plain_, folded_;
  cuda::ConvolutionKind kind_;
  FoldedBlocks blocks_;
  FoldedFilterIndex index_;
};

}  // namespace tandem::layers
