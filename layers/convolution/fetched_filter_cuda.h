// The weights of a convolution in the form that cuDNN reads: the float32 weights themselves, or a
// copy in scratch memory. The copy is made when the weights are fetched; it is rounded if the
// convolution has 16 bits, and in (O, H, W, I) order if channels are last. cuDNN writes the
// gradient in the same form; it is converted here to float32 in (O, I, H, W) order.
#pragma once

#include <cstdint>

#include "plugins/cuda/convolution_shape.h"
#include "plugins/cuda/elements.h"
#include "plugins/cuda/indexing.h"
#include "plugins/cuda/scratch_memory.h"
#include "plugins/cuda/teams.h"

namespace tandem::layers {

// The offset in the copy of the element at offset `plain` in (O, I, H, W) order.
struct FilterIndex {
  [[nodiscard]] TANDEM_HOST_DEVICE int64_t offset(int64_t plain) const {
    if (is_plain()) return plain;
    const int64_t line = cuda::quotient(plain, points), output = cuda::quotient(line, channels);
    return (output * points + (plain - line * points)) * channels + (line - output * channels);
  }
  // With one channel, or one pixel, both orders are the same bytes.
  [[nodiscard]] TANDEM_HOST_DEVICE bool is_plain() const {
    return !channels_last || channels == 1 || points == 1;
  }
  cuda::Divisor channels, points;  // of the weights of an output channel
  bool channels_last;
};

// Elements are processed in plain order, in which less memory is touched by the threads of a warp.
template <class T>
struct FetchedFilterElement {
  static constexpr int at_once = cuda::elements_at_once<T>;
  [[nodiscard]] bool can_vectorize() const {
    return index.is_plain() && cuda::are_aligned(plain) && cuda::are_aligned(fetched);
  }
  template <int n>
  [[nodiscard]] TANDEM_HOST_DEVICE auto read(int64_t i) const {
    return cuda::read<n>(plain + i);
  }
  template <int n>
  TANDEM_HOST_DEVICE void write(int64_t i, const cuda::Elements<float, n>& v) const {
    cuda::write(cuda::each_lane<n>([&](int lane) { return v[lane]; }), fetched + index.offset(i));
  }
  FilterIndex index;
  const float* plain;
  T* fetched;
};
template <class T>
struct FilterGradientElement {
  static constexpr int at_once = cuda::elements_at_once<T>;
  [[nodiscard]] bool can_vectorize() const {
    return index.is_plain() && cuda::are_aligned(plain) && cuda::are_aligned(fetched);
  }
  template <int n>
  struct Read {
    cuda::Elements<T, n> fetched;
    cuda::Elements<float, n> before;
  };
  template <int n>
  [[nodiscard]] TANDEM_HOST_DEVICE Read<n> read(int64_t i) const {
    Read<n> result{cuda::read<n>(fetched + index.offset(i)), {}};
    if (accumulate) result.before = cuda::read<n>(plain + i);
    return result;
  }
  template <int n>
  TANDEM_HOST_DEVICE void write(int64_t i, const Read<n>& v) const {
    const auto sum = [&](int lane) { return v.before[lane] + v.fetched[lane]; };
    cuda::write(cuda::each_lane<n>(sum), plain + i);
  }
  FilterIndex index;
  const T* fetched;
  float* plain;
  bool accumulate;
};

class FetchedFilter {
 public:
  // `has_gradient`: the scratch memory also serves for gradients that are added to others.
  FetchedFilter(const tandem_shape& weight, const cuda::ConvolutionKind& kind, bool has_gradient)
      : index_{weight.c, weight.h * weight.w, kind.channels_last},
        elements_(sdk::count(weight)),
        dtype_(kind.dtype),
        is_copy_(kind.dtype != TANDEM_FLOAT32 || !index_.is_plain()),
        has_gradient_(has_gradient) {}

  [[nodiscard]] bool is_copy() const { return is_copy_; }
  // The size of the copy or of a gradient in its form, rounded up so that what follows it in
  // scratch memory is aligned like it.
  [[nodiscard]] int64_t bytes() const {
    const int64_t element = dtype_ == TANDEM_FLOAT32 ? 4 : 2;
    return is_copy_ || has_gradient_ ? cuda::scratch_part(element * elements_) : 0;
  }

  // The weights for the convolution: `weight`, or the copy at `memory`.
  const void* fetch(const sdk::Call& call, const float* weight, void* memory) const {
    if (!is_copy_) return weight;
    cuda::with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      cuda::for_each(call, elements_,
                     FetchedFilterElement<T>{index_, weight, static_cast<T*>(memory)});
    });
    return memory;
  }
  // Converts a gradient at `memory`, which has the form of the copy.
  void take_gradient(const sdk::Call& call, const void* memory, float* gradient,
                     bool accumulate) const {
    cuda::with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      cuda::for_each(
          call, elements_,
          FilterGradientElement<T>{index_, static_cast<const T*>(memory), gradient, accumulate});
    });
  }

 private:
  FilterIndex index_;
  int64_t elements_;
  int32_t dtype_;
  bool is_copy_, has_gradient_;
};

}  // namespace tandem::layers
