// The weights of a convolution as cuDNN reads them: the float32 ones themselves, or a copy in
// scratch memory that is made when they are fetched: rounded where the convolution has 16 bits, in
// (O, H, W, I) order where its channels are last. Their gradient comes from cuDNN in the same form
// and is made float32, in (O, I, H, W) order, here.
#pragma once

#include <cstdint>

#include "plugins/cuda/convolution_shape.h"
#include "plugins/cuda/elements.h"
#include "plugins/cuda/indexing.h"
#include "plugins/cuda/teams.h"

namespace tandem::layers {

// Where the element that lies at `plain` in (O, I, H, W) order has its place.
struct FilterIndex {
  [[nodiscard]] TANDEM_HOST_DEVICE int64_t offset(int64_t plain) const {
    if (!channels_last) return plain;
    const int64_t line = cuda::quotient(plain, points), output = cuda::quotient(line, channels);
    return (output * points + (plain - line * points)) * channels + (line - output * channels);
  }
  cuda::Divisor channels, points;  // of an output channel's weights
  bool channels_last;
};

template <class T>
struct FetchedFilterElement {
  TANDEM_HOST_DEVICE void operator()(int64_t i) const {
    cuda::store(plain[i], fetched[index.offset(i)]);
  }
  FilterIndex index;
  const float* plain;
  T* fetched;
};
template <class T>
struct FilterGradientElement {
  TANDEM_HOST_DEVICE void operator()(int64_t i) const {
    plain[i] = (accumulate ? plain[i] : 0.0F) + cuda::load(fetched[index.offset(i)]);
  }
  FilterIndex index;
  const T* fetched;
  float* plain;
  bool accumulate;
};

class FetchedFilter {
 public:
  FetchedFilter(const tandem_shape& weight, const cuda::ConvolutionKind& kind)
      : index_{weight.c, weight.h * weight.w, kind.channels_last},
        elements_(sdk::count(weight)),
        dtype_(kind.dtype),
        // With one channel, or one pixel, both orders are the same bytes.
        is_copy_(kind.dtype != TANDEM_FLOAT32 ||
                 (kind.channels_last && weight.c > 1 && weight.h * weight.w > 1)) {}

  [[nodiscard]] bool is_copy() const { return is_copy_; }
  // Of the copy, rounded up so that what lies behind it in scratch memory is as aligned as that.
  [[nodiscard]] int64_t bytes() const {
    const int64_t element = dtype_ == TANDEM_FLOAT32 ? 4 : 2;
    return is_copy_ ? (element * elements_ + 255) / 256 * 256 : 0;
  }

  // What the convolution is to read: `weight`, or the copy at `memory`.
  const void* fetch(const sdk::Call& call, const float* weight, void* memory) const {
    if (!is_copy_) return weight;
    cuda::with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      cuda::for_each(call, elements_,
                     FetchedFilterElement<T>{index_, weight, static_cast<T*>(memory)});
    });
    return memory;
  }
  // From a gradient at `memory` in the copy's form.
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
  bool is_copy_;
};

}  // namespace tandem::layers
