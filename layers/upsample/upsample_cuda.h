// Upsample on NVIDIA GPUs: one thread per element of the result; backward, one per element of the
// input, which adds its shares in the order of the output's pixels.
#pragma once

#include "layers/upsample/upsample.h"
#include "plugins/cuda/elements.h"
#include "plugins/cuda/indexing.h"
#include "plugins/cuda/teams.h"

namespace tandem::layers {

template <class T>
struct UpsampleForward {
  [[nodiscard]] TANDEM_HOST_DEVICE float between(const cuda::Position& at, int64_t row,
                                                 const UpsampleAxis::Source& columns) const {
    const float a = cuda::load(x[input.index({at.n, at.c, row, columns.first})]);
    const float b = cuda::load(x[input.index({at.n, at.c, row, columns.second})]);
    return a + columns.second_share * (b - a);
  }
  TANDEM_HOST_DEVICE void operator()(int64_t i) const {
    const cuda::Position at = output.position(i);
    const UpsampleAxis::Source rows = h.source(at.h), columns = w.source(at.w);
    if (!h.is_linear) {
      y[i] = x[input.index({at.n, at.c, rows.first, columns.first})];
      return;
    }
    const float a = between(at, rows.first, columns), b = between(at, rows.second, columns);
    cuda::store(a + rows.second_share * (b - a), y[i]);
  }
  UpsampleAxis h, w;
  cuda::TensorIndex input, output;
  const T* x;
  T* y;
};

template <class T>
struct UpsampleBackward {
  TANDEM_HOST_DEVICE void operator()(int64_t i) const {
    const cuda::Position at = input.position(i);
    const UpsampleAxis::Range rows = h.targets(at.h), columns = w.targets(at.w);
    float sum = 0;
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      const float of_row = h.share(row, at.h);
      if (of_row == 0) continue;
      float line = 0;
      for (int64_t column = columns.begin; column < columns.end; ++column) {
        const float of_column = w.share(column, at.w);
        if (of_column == 0) continue;
        line += of_column * cuda::load(dy[output.index({at.n, at.c, row, column})]);
      }
      sum += of_row * line;
    }
    cuda::store(sum, dx[i]);
  }
  UpsampleAxis h, w;
  cuda::TensorIndex input, output;
  const T* dy;
  T* dx;
};

class UpsampleCuda {
 public:
  UpsampleCuda(const sdk::Binding& binding, const sdk::Call&)
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
      cuda::for_each(call, outputs_,
                     UpsampleForward<T>{settings_.h, settings_.w, input_, output_,
                                        pass.input<T>(0).get(), pass.output<T>(0).get()});
    });
  }
  void backward_data(const sdk::Call& call, const sdk::DevicePass& pass) const {
    cuda::with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      cuda::for_each(
          call, inputs_,
          UpsampleBackward<T>{settings_.h, settings_.w, input_, output_,
                              pass.output_gradient<T>(0).get(), pass.input_gradient<T>(0).get()});
    });
  }

 private:
  UpsampleSettings settings_;
  cuda::TensorIndex input_, output_;
  int64_t inputs_, outputs_;
  int32_t dtype_;
};

}  // namespace tandem::layers
