// Pooling of float32 by plain loops over the channels that are next to each other in memory, for
// any window and layout, where oneDNN has only reference code. A NaN is the maximum of every window
// that contains it, and of equal elements the first one; forward saves where in its plane each
// maximum is. Each element is summed up by one thread in the order of memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "layers/pooling/pooling.h"
#include "plugins/cpu/fused_relu.h"
#include "plugins/cpu/layout.h"
#include "plugins/cpu/onednn.h"
#include "plugins/cpu/team.h"

namespace tandem::layers {

class PlainPooling : public sdk::Needs {
 public:
  // Null where oneDNN's kernels are used: by instruction set and dtype.
  static std::unique_ptr<PlainPooling> make(const sdk::Binding& binding) {
    if (!cpu::has_own_kernels_only(binding.input(0).dtype)) return nullptr;
    return std::unique_ptr<PlainPooling>(new PlainPooling(binding));
  }

  void forward(const sdk::Call& call, const sdk::Pass& pass) const;
  void backward_data(const sdk::Call& call, const sdk::Pass& pass) const;

 private:
  struct Range {
    int64_t begin, end;
  };
  struct Axis {
    int64_t input, output, kernel, stride, pad;

    // The pixels of window `i` that are in the image.
    [[nodiscard]] Range pixels_of(int64_t i) const {
      const int64_t begin = i * stride - pad;
      return {std::max<int64_t>(begin, 0), std::min(begin + kernel, input)};
    }
    // The windows that contain the pixel.
    [[nodiscard]] Range windows_of(int64_t pixel) const {
      const int64_t place = pixel + pad;
      return {place < kernel ? 0 : (place - kernel) / stride + 1,
              std::min(output, place / stride + 1)};
    }
    // By what an average of window `i` divides.
    [[nodiscard]] float extent_of(int64_t i, bool counts_padding) const {
      const int64_t begin = i * stride - pad;
      const Range inside = pixels_of(i);
      return static_cast<float>(counts_padding ? std::min(begin + kernel, input + pad) - begin
                                               : inside.end - inside.begin);
    }
  };
  explicit PlainPooling(const sdk::Binding& binding);

  // Rows of a plane, which is a block of channels of an image.
  void average_row(int64_t row, const float* x, float* y) const;
  void maximum_row(int64_t row, const float* x, float* y, int32_t* places) const;
  void average_gradient(int64_t row, const float* dy, float* dx) const;
  void maximum_gradient(int64_t row, const float* dy, const int32_t* places, float* dx) const;
  template <int64_t lanes>
  static void average_of(const Range& rows, const Range& columns, int64_t line, int64_t block,
                         float divisor, const float* x, float* y);
  template <int64_t lanes>
  static void maximum_of(const Range& rows, const Range& columns, int64_t width, int64_t block,
                         const float* x, float* y, int32_t* places);
  // Calls body(number of channels as a constant, first channel) for all of a block.
  template <class Body>
  static void for_channels(int64_t block, const Body& body) {
    int64_t c = 0;
    for (; c + 16 <= block; c += 16) body(std::integral_constant<int64_t, 16>(), c);
    if (c + 8 <= block) body(std::integral_constant<int64_t, 8>(), std::exchange(c, c + 8));
    if (c + 4 <= block) body(std::integral_constant<int64_t, 4>(), std::exchange(c, c + 4));
    for (; c < block; ++c) body(std::integral_constant<int64_t, 1>(), c);
  }

  bool maximum_, counts_padding_, follows_relu_;
  int64_t block_, planes_;
  Axis h_, w_;
};

}  // namespace tandem::layers
