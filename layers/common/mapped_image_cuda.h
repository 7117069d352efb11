// The kernel of images whose pixels are made of pixels of the input (mapped_image.h), on NVIDIA
// GPUs: one thread per element of the result; backward, one per element of the input, which adds
// its shares in the order of the output's pixels.
#pragma once

#include "layers/common/mapped_image.h"
#include "plugins/cuda/elements.h"
#include "plugins/cuda/indexing.h"
#include "plugins/cuda/teams.h"

namespace tandem::layers {

template <class T, class Axis>
struct MappedImageForward {
  [[nodiscard]] TANDEM_HOST_DEVICE float between(const cuda::Position& at, int64_t row,
                                                 const PixelSource& columns) const {
    const float a = cuda::load(x[input.index({at.n, at.c, row, columns.first})]);
    const float b = cuda::load(x[input.index({at.n, at.c, row, columns.second})]);
    return a + columns.second_share * (b - a);
  }
  TANDEM_HOST_DEVICE void operator()(int64_t i) const {
    const cuda::Position at = output.position(i);
    const PixelSource rows = h.source(at.h), columns = w.source(at.w);
    if (rows.first < 0 || columns.first < 0) {
      cuda::store(value, y[i]);
    } else if (rows.second_share == 0 && columns.second_share == 0) {
      y[i] = x[input.index({at.n, at.c, rows.first, columns.first})];
    } else {
      const float a = between(at, rows.first, columns), b = between(at, rows.second, columns);
      cuda::store(a + rows.second_share * (b - a), y[i]);
    }
  }
  Axis h, w;
  float value;
  cuda::TensorIndex input, output;
  const T* x;
  T* y;
};

template <class T, class Axis>
struct MappedImageBackward {
  [[nodiscard]] TANDEM_HOST_DEVICE float of_row(const cuda::Position& at, int64_t row) const {
    float sum = 0;
    for (int k = 0; k < Axis::ranges; ++k) {
      const PixelRange columns = w.targets(at.w, k);
      for (int64_t column = columns.begin; column < columns.end; ++column) {
        const float share = w.source(column).share(at.w);
        if (share != 0) sum += share * cuda::load(dy[output.index({at.n, at.c, row, column})]);
      }
    }
    return sum;
  }
  TANDEM_HOST_DEVICE void operator()(int64_t i) const {
    const cuda::Position at = input.position(i);
    float sum = 0;
    for (int k = 0; k < Axis::ranges; ++k) {
      const PixelRange rows = h.targets(at.h, k);
      for (int64_t row = rows.begin; row < rows.end; ++row) {
        const float share = h.source(row).share(at.h);
        if (share != 0) sum += share * of_row(at, row);
      }
    }
    cuda::store(sum, dx[i]);
  }
  Axis h, w;
  cuda::TensorIndex input, output;
  const T* dy;
  T* dx;
};

template <class Settings>
class MappedImageCuda {
 public:
  MappedImageCuda(const sdk::Binding& binding, const sdk::Call&)
      : settings_(binding.attributes, binding.input(0).shape),
        input_(binding.input(0)),
        output_(binding.output(0)),
        inputs_(sdk::count(binding.input(0).shape)),
        outputs_(sdk::count(binding.output(0).shape)),
        dtype_(binding.input(0).dtype) {}

  static constexpr uint32_t dtypes = cuda::all_dtypes;

  static sdk::LayoutOptions layouts(const sdk::Binding&) { return cuda::plain_layouts(); }

  void forward(const sdk::Call& call, const sdk::DevicePass& pass) const {
    cuda::with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      cuda::for_each(
          call, outputs_,
          MappedImageForward<T, Axis>{settings_.h, settings_.w, settings_.value, input_, output_,
                                      pass.input<T>(0).get(), pass.output<T>(0).get()});
    });
  }
  void backward_data(const sdk::Call& call, const sdk::DevicePass& pass) const {
    cuda::with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      cuda::for_each(call, inputs_,
                     MappedImageBackward<T, Axis>{settings_.h, settings_.w, input_, output_,
                                                  pass.output_gradient<T>(0).get(),
                                                  pass.input_gradient<T>(0).get()});
    });
  }

 private:
  using Axis = decltype(Settings::h);
  Settings settings_;
  cuda::TensorIndex input_, output_;
  int64_t inputs_, outputs_;
  int32_t dtype_;
};

}  // namespace tandem::layers
