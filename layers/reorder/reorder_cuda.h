// Reorder on NVIDIA GPUs, between NCHW and NHWC and between dtypes: one thread per element, in the
// order of the target. Color images on their way to NHWC are read and written by vectors.
#pragma once

#include "layers/common/box_cuda.h"
#include "layers/reorder/reorder.h"
#include "plugins/cuda/vectors.h"

namespace tandem::layers {

// Element i of the body is pixel i of all images: its colors are read from three planes and stored
// side by side.
template <class T>
struct ColorsSideBySide {
  static constexpr int colors = 3, at_once = 8;
  [[nodiscard]] bool can_vectorize() const {
    return cuda::are_aligned(x) && cuda::are_aligned(y) && pixels % at_once == 0;
  }
  template <int n>
  struct Read {
    cuda::Elements<float, n> color[colors];
  };
  template <int n>
  [[nodiscard]] TANDEM_HOST_DEVICE Read<n> read(int64_t i) const {
    const float* plane = x + i + cuda::quotient(i, pixels) * (colors - 1) * pixels;
    return {
        {cuda::read<n>(plane), cuda::read<n>(plane + pixels), cuda::read<n>(plane + 2 * pixels)}};
  }
  template <int n>
  TANDEM_HOST_DEVICE void write(int64_t i, const Read<n>& v) const {
    const auto values = cuda::each_lane<n * colors>(
        [&](int lane) { return v.color[lane % colors][lane / colors]; });
    cuda::write_to<(n > 1)>(y + i * colors, values);
  }
  cuda::Divisor pixels;
  const float* x;
  T* y;
};

class ReorderCuda {
 public:
  ReorderCuda(const sdk::Binding& binding, const sdk::Call&)
      : there_(binding.input(0), binding.output(0)),
        back_(binding.output(0), binding.input(0)),
        from_(binding.input(0).dtype),
        to_(binding.output(0).dtype),
        rows_(binding.input(0).shape.n),
        pixels_(binding.input(0).shape.h * binding.input(0).shape.w),
        are_colors_(binding.input(0).shape.c == 3 && binding.input(0).layout == TANDEM_NCHW &&
                    binding.output(0).layout == TANDEM_NHWC && from_ == TANDEM_FLOAT32) {}

  static constexpr uint32_t dtypes = cuda::all_dtypes;

  static sdk::LayoutOptions layouts(const sdk::Binding&) {
    return {{TANDEM_NCHW, TANDEM_NHWC, 0}, {TANDEM_NHWC, TANDEM_NCHW, 0}};
  }

  void forward(const sdk::Call& call, const sdk::DevicePass& pass) const {
    if (!are_colors_) {
      return convert(call, there_, from_, to_, pass.raw.inputs[0], pass.raw.outputs[0]);
    }
    cuda::with_elements(to_, [&](auto element) {
      using T = decltype(element);
      cuda::for_each(call, rows_ * pixels_,
                     ColorsSideBySide<T>{pixels_, pass.input(0).get(), pass.output<T>(0).get()});
    });
  }
  void backward_data(const sdk::Call& call, const sdk::DevicePass& pass) const {
    convert(call, back_, to_, from_, pass.raw.output_gradients[0], pass.raw.input_gradients[0]);
  }

 private:
  static void convert(const sdk::Call& call, const Box& box, int32_t from, int32_t to,
                      const void* source, void* target) {
    cuda::with_elements(from, [&](auto from_element) {
      cuda::with_elements(to, [&](auto to_element) {
        copy_box(call, box, static_cast<const decltype(from_element)*>(source),
                 static_cast<decltype(to_element)*>(target));
      });
    });
  }

  Box there_, back_;
  int32_t from_, to_;
  int64_t rows_, pixels_;
  bool are_colors_;
};

}  // namespace tandem::layers
